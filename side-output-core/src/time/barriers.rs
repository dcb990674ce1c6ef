/// Aligns the barriers of several inputs: a barrier passes when every input has reached it.
///
/// An input that has sent a barrier which has not passed is blocked: what comes after the barrier
/// must not be read before the other inputs have reached it too. A barrier counts as all lower ones,
/// and an input that has ended counts as having sent all that are to come. Barriers pass in the
/// order of their ids, each once.
///
/// # Examples
///
/// ```
/// use side_output::Barriers;
///
/// let mut barriers = Barriers::new(2);
/// barriers.on_barrier(0, 1);
/// assert!(barriers.is_blocked(0) && !barriers.is_blocked(1));
/// // Input 1 has none numbered 1; this one stands for it.
/// barriers.on_barrier(1, 2);
/// assert_eq!(barriers.pass(), Some(1));
/// assert!(!barriers.is_blocked(0) && barriers.is_blocked(1));
/// barriers.on_end(0);
/// assert_eq!(barriers.pass(), Some(2));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Barriers {
    inputs: Vec<InputBarriers>,
    /// The last barrier that has passed.
    passed: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct InputBarriers {
    /// The highest barrier that it has sent.
    reached: Option<u64>,
    ended: bool,
    /// It is not read yet.
    unread: bool,
}

impl Barriers {
    /// The alignment of that many inputs.
    #[must_use]
    pub fn new(inputs: usize) -> Self {
        Self { inputs: vec![InputBarriers::default(); inputs], passed: None }
    }

    /// Notes whether `input` is read at all. While it is not, no barrier passes, and none blocks
    /// the inputs that are read, which it may be waiting for.
    pub fn set_unread(&mut self, input: usize, unread: bool) {
        self.inputs[input].unread = unread;
    }

    /// Takes a barrier of `input`, which is ignored if it has passed.
    pub fn on_barrier(&mut self, input: usize, id: u64) {
        let reached = &mut self.inputs[input].reached;
        *reached = (*reached).max(Some(id));
    }

    /// Notes that `input` has ended.
    pub fn on_end(&mut self, input: usize) {
        self.inputs[input].ended = true;
    }

    /// Whether `input` has to wait until its barrier has passed.
    #[inline]
    #[must_use]
    pub fn is_blocked(&self, input: usize) -> bool {
        self.inputs[input].reached > self.passed && !self.inputs.iter().any(|input| input.unread)
    }

    /// Lets the next barrier pass, if every input has reached it. Several can do so after an input
    /// has ended.
    pub fn pass(&mut self) -> Option<u64> {
        let waiting = self.inputs.iter().filter_map(|input| input.reached);
        let next = waiting.filter(|id| Some(*id) > self.passed).min()?;
        let has_reached =
            |input: &InputBarriers| !input.unread && (input.ended || input.reached >= Some(next));
        if !self.inputs.iter().all(has_reached) {
            return None;
        }
        self.passed = Some(next);
        self.passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads `scripts`, the barriers of each input, in every order that the alignment allows;
    /// `at` is how many of its barriers each input has sent.
    fn explore(barriers: &Barriers, scripts: &[Vec<u64>], at: &[usize], passed: &[u64]) -> u32 {
        let mut orders = 0;
        for input in 0..scripts.len() {
            let script = &scripts[input];
            if barriers.is_blocked(input) || at[input] > script.len() {
                continue;
            }
            let (mut barriers, mut at) = (barriers.clone(), at.to_vec());
            let mut passed = passed.to_vec();
            match script.get(at[input]) {
                Some(id) => barriers.on_barrier(input, *id),
                None => barriers.on_end(input),
            }
            at[input] += 1;
            while let Some(id) = barriers.pass() {
                // The cut: each input up to its first barrier of that number or above.
                for (script, at) in scripts.iter().zip(&at) {
                    let cut = script.iter().position(|sent| *sent >= id).unwrap_or(script.len());
                    assert_eq!(*at, cut + 1, "{id} of {scripts:?} after {passed:?}");
                }
                passed.push(id);
            }
            orders += explore(&barriers, scripts, &at, &passed);
        }
        if orders == 0 {
            let mut expected = scripts.concat();
            expected.sort_unstable();
            expected.dedup();
            assert!(at.iter().zip(scripts).all(|(at, script)| *at == script.len() + 1), "stuck");
            assert_eq!(passed, expected, "{scripts:?}");
            orders = 1;
        }
        orders
    }

    #[test]
    fn fault_33_barriers_pass_once_in_order_and_where_they_cut_in_any_order_of_reading() {
        let script =
            |bits: u32| (1..=3).filter(|id| bits >> (id - 1) & 1 == 1).collect::<Vec<u64>>();
        let mut orders = 0;
        // Under Miri, scripts of one barrier.
        let bits =
            if cfg!(miri) { vec![0o111, 0o121, 0o421, 0o011] } else { (0..0o1000).collect() };
        for bits in bits {
            let scripts = [script(bits), script(bits >> 3), script(bits >> 6)];
            orders += explore(&Barriers::new(3), &scripts, &[0; 3], &[]);
            orders += explore(&Barriers::new(2), &scripts[..2], &[0; 2], &[]);
        }
        assert!(cfg!(miri) || orders > 10_000, "{orders} orders");
    }

    #[test]
    fn fault_19_an_input_that_has_ended_behind_its_barrier_counts_once() {
        let mut barriers = Barriers::new(3);
        barriers.on_barrier(0, 1);
        barriers.on_end(0);
        barriers.on_end(1);
        assert_eq!(barriers.pass(), None);
        barriers.on_barrier(2, 2);
        assert_eq!((barriers.pass(), barriers.is_blocked(2)), (Some(1), true));
        assert_eq!((barriers.pass(), barriers.is_blocked(2)), (Some(2), false));
        barriers.on_barrier(2, 1);
        assert_eq!((barriers.pass(), barriers.is_blocked(2)), (None, false));
    }

    #[test]
    fn fault_33_an_input_that_is_not_read_holds_barriers_back_and_blocks_nobody() {
        let mut barriers = Barriers::new(2);
        barriers.set_unread(0, true);
        barriers.on_barrier(1, 1);
        assert_eq!((barriers.pass(), barriers.is_blocked(1)), (None, false));
        barriers.on_barrier(1, 3);
        barriers.on_end(1);
        barriers.set_unread(0, false);
        assert_eq!(barriers.pass(), None);
        for id in 1..=4 {
            barriers.on_barrier(0, id);
            assert_eq!((barriers.pass(), barriers.pass()), (Some(id), None));
        }
    }
}
