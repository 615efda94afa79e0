//! Performs independent work items on several threads and passes on their results as they complete.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

/// Calls `work` for each item, in order, on `threads` threads. `work` can send reports through its second argument,
/// which returns false when reports are no longer wanted. On the calling thread, passes the reports about an item
/// and then its result to `take`.
///
/// When `stop` becomes true, no further item is started. Items in progress are finished, and their results are
/// passed on. An error of `take` ends the function.
pub(crate) fn for_each<T: Sync, R: Send, E>(
    items: &[T],
    threads: usize,
    stop: &AtomicBool,
    work: impl Fn(&T, &dyn Fn(R) -> bool) -> R + Sync,
    take: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E> {
    let threads = threads.clamp(1, items.len().max(1));
    let next = AtomicUsize::new(0);
    // Bounded, so that memory is limited.
    let (send, receive) = mpsc::sync_channel(threads);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (send, next, work) = (send.clone(), &next, &work);
            scope.spawn(move || {
                // Sending fails if `take` has failed and the receiver was dropped.
                while !stop.load(Ordering::Relaxed)
                    && let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed))
                    && send.send(work(item, &|news| send.send(news).is_ok())).is_ok()
                {}
            });
        }
        drop(send);
        receive.into_iter().try_for_each(take)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_done_once() {
        for threads in [1, 2, 7] {
            let items: Vec<u32> = (0..100).collect();
            let mut done = Vec::new();
            let take = |n| {
                done.push(n);
                Ok::<_, ()>(())
            };
            for_each(&items, threads, &AtomicBool::new(false), |n, _| n * 2, take).unwrap();
            done.sort_unstable();
            assert_eq!(done, items.iter().map(|n| n * 2).collect::<Vec<_>>());
        }
    }

    #[test]
    fn started_items_are_finished_after_a_stop() {
        let items: Vec<u32> = (0..1000).collect();
        let (stop, begun, mut taken) = (AtomicBool::new(false), AtomicUsize::new(0), 0);
        let work = |_: &u32, _: &dyn Fn(usize) -> bool| begun.fetch_add(1, Ordering::Relaxed);
        let take = |_| {
            taken += 1;
            stop.store(true, Ordering::Relaxed);
            Ok::<_, ()>(())
        };
        for_each(&items, 2, &stop, work, take).unwrap();
        assert_eq!(taken, begun.load(Ordering::Relaxed));
        assert!(taken < 20, "{taken}");
    }

    #[test]
    fn progress_is_sent_until_the_receiver_is_dropped() {
        let mut heard = Vec::new();
        let work = |item: &u32, send: &dyn Fn(u32) -> bool| {
            assert!(send(item + 1));
            item + 2
        };
        let take = |news| {
            heard.push(news);
            Ok::<_, ()>(())
        };
        for_each(&[10], 1, &AtomicBool::new(false), work, take).unwrap();
        assert_eq!(heard, [11, 12]);
        let work = |_: &u32, send: &dyn Fn(u32) -> bool| (0..).find(|news| !send(*news)).unwrap_or(0);
        assert_eq!(for_each(&[10], 1, &AtomicBool::new(false), work, |_| Err("full")), Err("full"));
    }

    #[test]
    fn a_failure_ends_the_work() {
        let items: Vec<u32> = (0..1000).collect();
        assert_eq!(for_each(&items, 2, &AtomicBool::new(false), |_, _| (), |()| Err("full")), Err("full"));
    }
}
