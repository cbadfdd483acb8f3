//! How everyone in the server learns that it stops: first to finish, then to end.

use tokio::sync::{mpsc, watch};

/// How far the end is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Running,
    /// Nothing new is begun; what was begun is finished.
    Finishing,
    /// Whatever is still there is cut.
    Ending,
}

/// Says that it stops, and waits for those who have heard it.
#[derive(Debug)]
pub(crate) struct Stopper {
    stage: watch::Sender<Stage>,
    /// Its other end is held by everyone who must be waited for.
    all_gone: mpsc::Receiver<()>,
}

/// Hears that it stops. Whoever holds one is waited for, unless it says otherwise.
#[derive(Debug, Clone)]
pub(crate) struct Stop {
    stage: watch::Receiver<Stage>,
    _here: Option<mpsc::Sender<()>>,
}

/// A pair.
pub(crate) fn stop() -> (Stopper, Stop) {
    let (sender, receiver) = watch::channel(Stage::Running);
    let (here, all_gone) = mpsc::channel(1);
    (Stopper { stage: sender, all_gone }, Stop { stage: receiver, _here: Some(here) })
}

impl Stopper {
    /// Nothing new is begun from now on.
    pub(crate) fn finish(&self) {
        self.stage.send_replace(Stage::Finishing);
    }

    /// What is still there is cut.
    pub(crate) fn end(&self) {
        self.stage.send_replace(Stage::Ending);
    }

    /// Waits until nobody is there any more.
    pub(crate) async fn all_gone(&mut self) {
        while self.all_gone.recv().await.is_some() {}
    }
}

impl Stop {
    /// Hears the same, and is not waited for.
    pub(crate) fn not_waited_for(&self) -> Stop {
        Stop { stage: self.stage.clone(), _here: None }
    }

    /// Waits until nothing new should be begun.
    pub(crate) async fn finishing(&mut self) {
        self.reached(Stage::Finishing).await;
    }

    /// Waits until everything should end.
    pub(crate) async fn ending(&mut self) {
        self.reached(Stage::Ending).await;
    }

    async fn reached(&mut self, stage: Stage) {
        // When nobody can say so any more, it is the end as well.
        let _ = self.stage.wait_for(|now| *now >= stage).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_heard_it_is_waited_for() {
        let (mut stopper, mut stop) = stop();
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
    async fn who_only_listens_is_not_waited_for() {
        let (mut stopper, stop) = stop();
        let mut other = stop.not_waited_for();
        drop(stop);
        stopper.all_gone().await;
        stopper.finish();
        other.finishing().await;
    }

    #[tokio::test]
    async fn losing_the_stopper_is_the_end() {
        let (stopper, mut stop) = stop();
        drop(stopper);
        stop.ending().await;
    }
}
