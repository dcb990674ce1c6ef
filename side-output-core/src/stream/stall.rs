//! Notices when a reader waits for room in an output that nobody reads.
//!
//! Whether somebody will read later is not decidable from inside, so this is the one place that
//! looks at the time: a thread of its own, which exists only while somebody waits for room. It
//! reports; it decides no result, except where a reader asked to fail.

use super::board::Board;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

/// How often the watch looks.
const LOOK: Duration = Duration::from_millis(150);

/// How many looks in a row without any movement make a stall: less than a second in all.
const LOOKS: u32 = 4;

struct Watched {
    board: Weak<Board>,
    moves: u64,
    looks: u32,
}

static WATCHED: Mutex<Vec<Watched>> = Mutex::new(Vec::new());
static CHANGED: Condvar = Condvar::new();

/// Watches `board` as long as somebody waits for room there.
#[cfg(not(loom))]
pub(super) fn watch(board: &Arc<Board>) {
    use std::sync::Once;
    static STARTED: Once = Once::new();

    let watched = Watched { board: Arc::downgrade(board), moves: board.lock().moves, looks: 0 };
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner).push(watched);
    STARTED.call_once(|| {
        // Without threads there is no watch; everything else works.
        drop(std::thread::Builder::new().name("side-output-stall".to_owned()).spawn(look_for_ever));
    });
    CHANGED.notify_one();
}

#[cfg(loom)]
pub(super) fn watch(_board: &Arc<Board>) {}

#[cfg_attr(loom, expect(dead_code, reason = "loom models no time"))]
fn look_for_ever() {
    let mut watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        while watched.is_empty() {
            watched = CHANGED.wait(watched).unwrap_or_else(PoisonError::into_inner);
        }
        drop(watched);
        std::thread::sleep(LOOK);
        watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
        watched.retain_mut(look);
    }
}

/// Looks once; false when there is nothing left to watch.
fn look(watched: &mut Watched) -> bool {
    let Some(board) = watched.board.upgrade() else { return false };
    let mut state = board.lock();
    let Some(full) = state.blocked_by() else {
        state.watched = false;
        return false;
    };
    if state.moves != watched.moves {
        watched.moves = state.moves;
        watched.looks = 0;
        return true;
    }
    watched.looks += 1;
    if watched.looks == LOOKS {
        state.stalls += 1;
        let output = state.ports[full].spec.name;
        let capacity = state.ports[full].spec.capacity.get();
        let wakers = state.fail_stalled();
        drop(state);
        tracing::warn!(
            splitter = board.name(),
            output,
            capacity,
            "the splitter waits: this output is full and nobody reads it; read it, discard it, or \
             wire all outputs"
        );
        wakers.wake();
    }
    true
}
