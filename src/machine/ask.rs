//! What a machine may be asked, as types: each request knows its reply.

use super::Machine;

/// A request that knows its reply.
pub(crate) trait Ask<M: Machine> {
    /// What is answered.
    type Reply;

    /// The request as an event of the machine.
    fn into_event(self) -> M::Event;

    /// The reply in the answer to that event; `None` when it answers something else.
    fn reply(answer: M::Answer) -> Option<Self::Reply>;
}

/// Declares the events and answers of a machine from the list of its requests and their replies.
macro_rules! asks {
    ($machine:ty; $($name:ident -> $reply:ty;)*) => {
        /// What may be asked of the machine.
        #[derive(Clone, Debug)]
        pub(crate) enum Event {
            $(#[doc = concat!("See [`", stringify!($name), "`].")] $name($name),)*
        }

        /// What the machine answers, each to the event of its name.
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) enum Answer {
            $(#[doc = concat!("To [`", stringify!($name), "`].")] $name($reply),)*
        }

        $(impl crate::machine::ask::Ask<$machine> for $name {
            type Reply = $reply;

            fn into_event(self) -> Event {
                Event::$name(self)
            }

            fn reply(answer: Answer) -> Option<Self::Reply> {
                if let Answer::$name(reply) = answer {
                    Some(reply)
                } else {
                    None
                }
            }
        })*
    };
}

pub(crate) use asks;
