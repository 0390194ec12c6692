//! The rules that the machine keeps, each named after the fault that it prevents.

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// All are kept, always. A test takes one out to show that the regression test named after it can fail.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Rules { $($(#[$doc])* pub $name: bool),* }

        impl Rules {
            /// Every rule is kept.
            pub const ALL: Self = Self { $($name: true),* };

            /// The names of the rules.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// All rules but the one named, or `None` if there is no such rule.
            #[must_use]
            pub fn without(name: &str) -> Option<Self> {
                let mut rules = Self::ALL;
                match name {
                    $(stringify!($name) => rules.$name = false,)*
                    _ => return None,
                }
                Some(rules)
            }
        }
    };
}

rules! {
    /// R1, R2: the end of a proof frees the worker only if the worker still holds that proof's lease.
    end_names_its_lease,
    /// R3: a token names the boot and the journal number of its grant, so that it never repeats.
    tokens_never_repeat,
    /// R4: the last proof of a job moves the job in the same transaction.
    last_proof_moves_the_job,
    /// R5: a partition that is being finished holds no device slot.
    finishing_frees_the_slot,
    /// R6: an attempt that failed ends with its class and proves nothing.
    failure_is_not_success,
    /// R7: an attempt that ends while its job stops frees its worker like any other.
    stopping_frees_workers,
    /// R8: whatever ends an attempt ends its lease.
    every_end_ends_the_lease,
    /// R9: a job that failed leaves the queue.
    failed_jobs_end,
    /// R10: every end is counted once, in the transaction that ends.
    ends_are_counted,
    /// R11: an idempotency key names one job.
    keys_are_unique,
    /// R12: the same key with another request is refused.
    keys_pin_the_request,
    /// R13: only to come further than ever before clears the count of deaths.
    progress_is_new,
}

impl Default for Rules {
    fn default() -> Self {
        Self::ALL
    }
}
