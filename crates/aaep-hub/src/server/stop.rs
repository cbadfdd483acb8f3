//! Tells all tasks of the server that it stops: first to finish, then to end.

use tokio::sync::{mpsc, watch};

/// How far stopping has progressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum StopStage {
    Running,
    /// Nothing new begins; work in progress is finished.
    Finishing,
    /// Remaining work is cut off.
    Ending,
}

/// Announces the stop, and waits for the tasks that hold a signal.
#[derive(Debug)]
pub(crate) struct StopController {
    stage: watch::Sender<StopStage>,
    /// Every task that must be waited for holds a sender.
    all_gone: mpsc::Receiver<()>,
}

/// Receives the announcement. A task that holds one is waited for, unless it was made with `not_waited_for`.
#[derive(Debug, Clone)]
pub(crate) struct StopSignal {
    stage: watch::Receiver<StopStage>,
    _here: Option<mpsc::Sender<()>>,
}

/// Makes both ends.
pub(crate) fn stop_pair() -> (StopController, StopSignal) {
    let (sender, receiver) = watch::channel(StopStage::Running);
    let (here, all_gone) = mpsc::channel(1);
    (StopController { stage: sender, all_gone }, StopSignal { stage: receiver, _here: Some(here) })
}

impl StopController {
    /// Announces that nothing new may begin.
    pub(crate) fn finish(&self) {
        self.stage.send_replace(StopStage::Finishing);
    }

    /// Announces that remaining work is cut off.
    pub(crate) fn end(&self) {
        self.stage.send_replace(StopStage::Ending);
    }

    /// Waits until no task holds a signal.
    pub(crate) async fn all_gone(&mut self) {
        while self.all_gone.recv().await.is_some() {}
    }
}

impl StopSignal {
    /// A signal whose holder is not waited for.
    pub(crate) fn not_waited_for(&self) -> StopSignal {
        StopSignal { stage: self.stage.clone(), _here: None }
    }

    /// Waits until nothing new may begin.
    pub(crate) async fn finishing(&mut self) {
        self.reached(StopStage::Finishing).await;
    }

    /// Waits until everything must end.
    pub(crate) async fn ending(&mut self) {
        self.reached(StopStage::Ending).await;
    }

    async fn reached(&mut self, stage: StopStage) {
        // If the other end is gone, that is the end as well.
        let _ = self.stage.wait_for(|now| *now >= stage).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn stopping_waits_for_every_task_that_was_told() {
        let (mut stopper, mut stop) = stop_pair();
        let mut other = stop.clone();
        let worker = tokio::spawn(async move { other.ending().await });
        stopper.finish();
        stop.finishing().await;
        drop(stop);
        assert!(!worker.is_finished(), "finishing is not ending");
        stopper.end();
        stopper.all_gone().await;
        worker.await.expect("ended");
    }

    #[tokio::test]
    async fn stopping_does_not_wait_for_a_task_that_only_listens_for_it() {
        let (mut stopper, stop) = stop_pair();
        let mut other = stop.not_waited_for();
        drop(stop);
        stopper.all_gone().await;
        stopper.finish();
        other.finishing().await;
    }

    #[tokio::test]
    async fn losing_the_stopper_is_the_end() {
        let (stopper, mut stop) = stop_pair();
        drop(stopper);
        stop.ending().await;
    }
}
