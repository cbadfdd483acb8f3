//! One table of behaviours for every wire: a subscriber sees no difference between the wires.
//!
//! A wire is one file, which says where its hub is and how to break its rules, and one row at the end of
//! this file.

#![cfg(unix)]

mod behaviours;
#[cfg(feature = "grpc")]
mod grpc;
mod sse;
mod stdio;
mod unix;
mod websocket;
mod world;

/// One row: every behaviour on one wire.
macro_rules! row {
    ($wire:ident: $kind:ty) => {
        mod $wire {
            row!(@ $kind:
                a_subscription_is_accepted,
                each_rejection_is_told,
                a_stranger_is_turned_away,
                a_full_session_is_heard,
                a_confirmation_is_answered,
                a_clarification_is_answered,
                terms_are_renegotiated,
                the_subscriber_closes,
                the_hub_closes,
                a_cut_loses_nothing,
                messages_of_64_kib_and_1_mib_pass,
                a_malformed_frame_harms_nobody,
                an_oversize_frame_harms_nobody,
                a_slow_reader_slows_nobody,
                half_a_close_is_a_whole_one,
                vanishing_with_a_question_open_means_no,
            );
        }
    };
    (@ $kind:ty: $($behaviour:ident,)*) => {
        $(#[tokio::test(flavor = "multi_thread")]
        async fn $behaviour() {
            crate::behaviours::$behaviour::<$kind>().await;
        })*
    };
}

mod on {
    row!(server_sent_events: crate::sse::Sse);
    row!(websocket: crate::websocket::WebSocket);
    row!(unix_socket: crate::unix::Unix);
    #[cfg(feature = "grpc")]
    row!(grpc: crate::grpc::Grpc);
    row!(stdio: crate::stdio::StandardStreams);
}
