//! Work for all cores, and its results in the order of the work.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Does the same with every item, a few at a time on each free core.
///
/// A core takes the next `batch` items when it is free, so that one large document delays nobody.
pub fn on_all_cores<I: Sync, O: Send>(items: &[I], batch: usize, work: impl Fn(&I) -> O + Sync) -> Vec<O> {
    let cores = thread::available_parallelism().map_or(1, usize::from).min(items.len().div_ceil(batch));
    let next = AtomicUsize::new(0);
    let round = || {
        let mut done = Vec::new();
        loop {
            let from = next.fetch_add(batch, Ordering::Relaxed);
            if from >= items.len() {
                return done;
            }
            let to = (from + batch).min(items.len());
            done.extend(items[from..to].iter().enumerate().map(|(n, item)| (from + n, work(item))));
        }
    };
    let mut all: Vec<(usize, O)> = thread::scope(|scope| {
        let others: Vec<_> = (1..cores).map(|_| scope.spawn(round)).collect();
        let mut all = round();
        for other in others {
            all.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all
    });
    all.sort_unstable_by_key(|(n, _)| *n);
    all.into_iter().map(|(_, done)| done).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_work() {
        let items: Vec<usize> = (0..1000).collect();
        assert_eq!(on_all_cores(&items, 7, |n| n * 2), items.iter().map(|n| n * 2).collect::<Vec<_>>());
        assert!(on_all_cores(&Vec::<usize>::new(), 7, |n| n * 2).is_empty());
    }
}
