//! Notices when a reader waits for room in an output that nobody reads.
//!
//! Whether somebody will read later is not decidable from inside, so this is the one place that
//! looks at the time: a thread of its own, which exists only while somebody waits for room. It
//! reports; it decides no result, except where a reader asked to fail.

use super::board::{Board, Wait, Wakers};
use crate::sync::contain;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
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

/// What is watched, and whether a thread does it.
struct Watch {
    boards: Vec<Watched>,
    running: bool,
}

static WATCH: Mutex<Watch> = Mutex::new(Watch { boards: Vec::new(), running: false });

fn lock() -> MutexGuard<'static, Watch> {
    WATCH.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Watches `board` as long as somebody waits for room there.
#[cfg(not(loom))]
pub(super) fn watch(board: &Arc<Board>) {
    let watched = Watched { board: Arc::downgrade(board), moves: board.lock().moves, looks: 0 };
    let mut watch = lock();
    watch.boards.push(watched);
    if !watch.running {
        let thread = std::thread::Builder::new().name("side-output-stall".to_owned());
        // Without threads there is no watch; everything else works.
        watch.running = thread.spawn(look_until_nothing_is_watched).is_ok();
    }
}

#[cfg(loom)]
pub(super) fn watch(_board: &Arc<Board>) {}

#[cfg_attr(loom, expect(dead_code, reason = "loom models no time"))]
fn look_until_nothing_is_watched() {
    loop {
        std::thread::sleep(LOOK);
        let mut reports = Vec::new();
        let done = {
            let mut watch = lock();
            watch.boards.retain_mut(|watched| look(watched, &mut reports));
            watch.running = !watch.boards.is_empty();
            !watch.running
        };
        // Wakers, the log, and the last owner of a board run foreign code: not under the lock.
        for report in reports {
            contain(|| report.make());
        }
        if done {
            return;
        }
    }
}

/// What a look found.
struct Finding {
    board: Arc<Board>,
    /// The output to warn of, its capacity, and whether its destination is in the way.
    stalled: Option<(&'static str, usize, bool)>,
    /// The readers that asked for an error.
    wakers: Wakers,
}

impl Finding {
    fn make(self) {
        // The readers that asked for an error first: the log may panic.
        self.wakers.wake();
        let Some((output, capacity, wired)) = self.stalled else { return };
        let splitter = self.board.name();
        if wired {
            tracing::warn!(
                splitter,
                output,
                capacity,
                "the wiring waits: the destination of this output takes no more, or is not done"
            );
        } else {
            tracing::warn!(
                splitter,
                output,
                capacity,
                "the splitter waits: this output is full and nobody reads it; read it, discard \
                 it, or wire all outputs"
            );
        }
    }
}

/// Looks once; false when there is nothing left to watch.
fn look(watched: &mut Watched, reports: &mut Vec<Finding>) -> bool {
    let Some(board) = watched.board.upgrade() else { return false };
    let (mut keep, mut stalled, mut wakers) = (true, None, Wakers::default());
    {
        let mut state = board.lock();
        match state.blocked_by() {
            None => {
                state.watched = false;
                keep = false;
            }
            Some(_) if state.moves != watched.moves => {
                watched.moves = state.moves;
                watched.looks = 0;
            }
            Some((full, wait)) => {
                watched.looks = watched.looks.saturating_add(1);
                if watched.looks == LOOKS {
                    state.stalls += 1;
                    let spec = &state.ports[full].spec;
                    let wired = matches!(wait, Wait::Destination(_));
                    stalled = Some((spec.name, spec.capacity.get(), wired));
                }
                // Also those that came when the stall was known already.
                if watched.looks >= LOOKS {
                    wakers = state.fail_stalled();
                }
            }
        }
    }
    reports.push(Finding { board, stalled, wakers });
    keep
}
