//! What goes with which kind of lock: what may be combined, what is refused and why, and the test
//! for each *yes*.
//!
//! [`lock`](crate::Locker::lock) takes one key, [`lock_all`](crate::Locker::lock_all) several.
//! A lock of two keys costs 1.1 times what a lock of one key costs, and one of sixteen keys twice
//! as much, on five nodes (`benches/record/several-2026-11-23.md`). Where a cell says *no*, the
//! call is refused as misuse, with these words in its error.
//!
//! | with | one key | several keys | waiting | fenced | native | read | slots |
//! |---|---|---|---|---|---|---|---|
//! | `Durability::Volatile` | yes | yes | yes | yes | yes | yes | yes |
//! | `adopt` | yes | no: not adopted | yes | yes | yes | no: not adopted | no: not adopted |
//! | `release_by_token` | yes | no: not released | yes | yes | yes | no: not released | no: slot |
//! | `blocking` | yes | yes | yes | yes | yes | yes | yes |
//! | a `Client` beside it | yes | yes | yes | yes | yes | yes | yes |
//! | TLS | yes | yes | yes | yes | yes | yes | yes |
//! | `quorlock lock` | yes | yes | yes | yes | yes | yes | yes |
//! | `release_after` | yes | yes | yes | yes | yes | yes | yes |
//! | `lock_delay` | yes | yes | yes | yes | yes | yes | yes |
//! | `share` | yes | yes | yes | yes | yes | yes | yes |
//! | `within` | yes | yes | yes | yes | yes | yes | yes |
//! | `downgrade` | yes | no: several keys | yes | yes | yes | no: a read lock | no: a slot |
//! | `fair` | yes | no: stand in no queue | yes | yes | yes | yes | yes |
//! | `fair_strict` | yes | no: one key | yes | yes | yes | no: one key | no: one key |
//! | `revoke` | yes | yes | yes | yes | yes | no: are not asked | yes |
//! | `shutdown_leaving` | yes | yes | yes | yes | yes | yes | yes |
//!
//! Each *yes* has a test. *Native* is a lock on servers that have `DELIFEQ`
//! ([`native_commands`](crate::LockerBuilder::native_commands)). Of one key:
//!
//! | with | the test |
//! |---|---|
//! | `Durability::Volatile` | `durability::a_restarted_node_does_not_vote_and_the_others_do` |
//! | `adopt` | `handover::a_lock_that_was_left_is_adopted_at_once_and_once` |
//! | `release_by_token` | `handover::a_token_releases_its_lock_from_anywhere_and_no_other` |
//! | `blocking` | `blocking::everything_works_on_a_plain_thread` |
//! | a `Client` beside it | `all::a_client_beside_them_changes_neither_kind_of_lock` |
//! | TLS | `tls::order::a_dropped_guard_is_released_before_the_next_request` |
//! | `quorlock lock` | `program::codes::a_lock_that_is_held_is_busy` |
//! | `release_after` | `locking::a_lock_that_is_released_after_a_time_ends_then_on_the_servers` |
//! | `lock_delay` | `lock_delay::one_that_has_expired_keeps_others_out` |
//! | `share` | `sharing::one_key_is_released_with_the_last_handle` |
//! | `within` | `sharing::a_lock_is_had_again_within_its_guard` |
//! | `downgrade` | `reading::downgrade::a_writer_reads_on_and_lets_readers_in` |
//! | `fair` | `fair::a_free_lock_is_asked_for_where_its_queue_is_and_then_on_all_nodes` |
//! | `fair_strict` | `fair_strict::a_free_lock_takes_one_question_to_each_node` |
//! | `revoke` | `revocation::a_holder_lets_go_of_one_key` |
//! | `shutdown_leaving` | `handover::what_a_shutdown_leaves_is_adopted_by_its_tokens` |
//!
//! And of several keys:
//!
//! | with | the test |
//! |---|---|
//! | `Durability::Volatile` | `all::one_two_and_sixteen_keys_are_set_and_deleted_together` |
//! | `blocking` | `blocking::several_keys_are_one_lock_on_a_plain_thread` |
//! | a `Client` beside it | `all::a_client_beside_them_changes_neither_kind_of_lock` |
//! | TLS | `tls::order::several_keys_are_one_lock_over_tls` |
//! | `quorlock lock` | `program::keys::several_keys_are_held_while_the_command_runs` |
//! | `release_after` | `all::several_keys_released_after_a_time_end_then_on_the_servers` |
//! | `lock_delay` | `lock_delay::several_keys_that_have_expired_keep_others_out` |
//! | `share` | `sharing::several_keys_are_released_with_the_last_handle` |
//! | `within` | `sharing::several_keys_are_had_again_within_their_guard` |
//! | `revoke` | `revocation::a_holder_lets_go_of_several_keys_for_one_of_them` |
//! | `shutdown_leaving` | `all::several_keys_that_a_shutdown_leaves_stay_until_their_ttl` |
//!
//! And while others wait:
//!
//! | with | the test |
//! |---|---|
//! | `Durability::Volatile` | `waiting::beside::a_lock_is_handed_over_on_servers_that_may_forget` |
//! | `adopt` | `waiting::beside::an_adopted_lock_goes_to_the_one_that_waits_when_it_is_released` |
//! | `release_by_token` | `waiting::beside::a_lock_that_a_token_releases_goes_to_who_waits` |
//! | `blocking` | `waiting::beside::a_plain_thread_waits_in_the_queue_and_is_handed_the_lock` |
//! | a `Client` beside it | `waiting::beside::a_client_beside_one_that_waits_disturbs_neither` |
//! | TLS | `tls::order::a_lock_is_handed_over_to_the_one_that_waits_over_tls` |
//! | `quorlock lock` | `program::codes::one_that_waits_gets_it_after_the_release` |
//! | `release_after` | `waiting::beside::a_lock_that_ends_after_a_time_goes_to_who_waits` |
//! | `lock_delay` | `lock_delay::one_that_waits_in_the_queue_waits_for_the_delay` |
//! | `share` | `sharing::one_that_waits_has_it_behind_the_last_handle` |
//! | `within` | `sharing::a_request_within_its_guard_passes_the_queue` |
//! | `downgrade` | `reading::downgrade::a_writer_becomes_a_reader_without_letting_go` |
//! | `fair` | `fair::a_newcomer_asks_no_node_for_the_lock_while_others_wait_for_it` |
//! | `fair_strict` | `fair_strict::one_that_waits_is_woken_by_the_release_and_polls_nothing` |
//! | `revoke` | `revocation::one_that_waits_has_what_is_let_go_of` |
//! | `shutdown_leaving` | `waiting::beside::a_lock_that_a_shutdown_leaves_goes_on_at_its_end` |
//!
//! And of a lock with a [fence](crate::LockRequest::fenced):
//!
//! | with | the test |
//! |---|---|
//! | `Durability::Volatile` | `fencing::on_servers_that_may_forget_a_lock_is_fenced_as_well` |
//! | `adopt` | `fencing::who_adopts_a_lock_has_a_higher_fence_than_who_left_it` |
//! | `release_by_token` | `fencing::a_token_releases_a_fenced_lock_and_the_next_fence_is_higher` |
//! | `blocking` | `fencing::a_plain_threads_lock_has_its_fence` |
//! | a `Client` beside it | `fencing::a_client_beside_fenced_locks_changes_neither` |
//! | TLS | `tls::order::a_lock_has_its_fence_over_tls` |
//! | `quorlock lock` | `program::child::its_fence_is_told_and_rises` |
//! | `release_after` | `fencing::a_fenced_lock_that_ends_after_a_time_leaves_its_fence` |
//! | `lock_delay` | `lock_delay::a_fenced_lock_that_has_expired_keeps_others_out` |
//! | `share` | `sharing::handles_of_a_fenced_lock_have_one_fence` |
//! | `within` | `sharing::within_its_guard_a_lock_has_the_same_fence` |
//! | `downgrade` | `reading::downgrade::a_fenced_writer_becomes_a_reader_without_a_fence` |
//! | `fair` | `fair::on_real_servers_they_have_it_in_that_order_too` |
//! | `fair_strict` | `fair_strict::it_is_fenced_and_each_fence_is_higher` |
//! | `revoke` | `revocation::a_holder_lets_go_of_a_fenced_lock` |
//! | `shutdown_leaving` | `fencing::what_a_shutdown_leaves_is_adopted_with_higher_fences` |
//!
//! And on servers that delete natively:
//!
//! | with | the test |
//! |---|---|
//! | `Durability::Volatile` | `native::beside::a_lock_on_servers_that_forget_is_deleted_natively` |
//! | `adopt` | `native::beside::a_lock_that_was_adopted_is_deleted_natively` |
//! | `release_by_token` | `native::beside::a_token_releases_its_lock_natively` |
//! | `blocking` | `native::beside::a_plain_threads_lock_is_deleted_natively` |
//! | a `Client` beside it | `native::beside::a_client_beside_such_locks_changes_neither` |
//! | TLS | `tls::order::a_lock_is_deleted_natively_over_tls` |
//! | `quorlock lock` | `program::codes::a_server_that_deletes_natively_deletes_its_lock_so` |
//! | `release_after` | `native::beside::a_lock_that_ends_after_a_time_is_left_to_its_end` |
//! | `lock_delay` | `lock_delay::one_that_would_be_deleted_natively_keeps_others_out` |
//! | `share` | `sharing::the_last_handle_deletes_natively` |
//! | `within` | `sharing::what_was_had_within_its_guard_is_deleted_natively_once` |
//! | `downgrade` | `reading::downgrade::a_writer_that_would_be_deleted_natively_becomes_a_reader` |
//! | `fair` | `fair::a_fair_lock_is_deleted_natively` |
//! | `fair_strict` | `fair_strict::one_is_let_go_of_where_others_are_deleted_natively` |
//! | `revoke` | `revocation::a_holder_lets_go_of_what_would_be_deleted_natively` |
//! | `shutdown_leaving` | `native::beside::a_lock_that_a_shutdown_leaves_is_adopted_and_deleted` |
//!
//! And of a read lock ([`read`](crate::Locker::read)):
//!
//! | with | the test |
//! |---|---|
//! | `Durability::Volatile` | `reading::beside::on_servers_that_may_forget_readers_share_as_well` |
//! | `blocking` | `reading::beside::plain_threads_share_a_lock` |
//! | a `Client` beside it | `reading::beside::a_client_beside_readers_changes_neither` |
//! | TLS | `tls::order::readers_share_a_lock_over_tls` |
//! | `quorlock lock` | `program::shared::those_that_share_a_lock_run_at_once` |
//! | `release_after` | `reading::beside::a_read_lock_released_after_a_time_ends_then` |
//! | `lock_delay` | `lock_delay::a_read_lock_that_has_expired_keeps_a_writer_out` |
//! | `share` | `sharing::a_read_lock_is_released_with_the_last_handle` |
//! | `within` | `sharing::a_reader_is_had_again_within_its_guard_or_a_writers` |
//! | `fair` | `fair::a_fair_reader_stands_behind_those_that_wait` |
//! | `shutdown_leaving` | `reading::beside::read_locks_that_a_shutdown_leaves_end_by_ttl` |
//!
//! And of [`slots`](crate::Locker::slots):
//!
//! | with | the test |
//! |---|---|
//! | `Durability::Volatile` | `slots::beside::on_servers_that_may_forget_slots_are_shared_too` |
//! | `blocking` | `slots::beside::plain_threads_have_slots` |
//! | a `Client` beside it | `slots::beside::a_client_beside_slots_changes_neither` |
//! | TLS | `tls::order::a_key_has_its_slots_over_tls` |
//! | `quorlock lock` | `program::slots::no_more_run_at_once_than_there_are_slots` |
//! | `release_after` | `slots::beside::a_slot_released_after_a_time_ends_then` |
//! | `lock_delay` | `lock_delay::a_slot_that_has_expired_is_no_others` |
//! | `share` | `sharing::a_slot_is_released_with_the_last_handle` |
//! | `within` | `sharing::within_a_slot_another_is_acquired` |
//! | `fair` | `fair::slots_are_had_in_the_order_of_arrival` |
//! | `revoke` | `slots::revoked::a_holder_lets_go_of_a_slot_by_its_number` |
//! | `shutdown_leaving` | `slots::beside::slots_that_a_shutdown_leaves_end_by_ttl` |
//!
//! Within a slot another one is acquired, for a slot covers no other.
//!
//! A [segment](crate::Locker::segments) is a lock of one key and all of them together are several
//! keys: the first two columns are theirs. A [latch](crate::Locker::latch) and a
//! [barrier](crate::Locker::barrier) are held by no one, so that there is nothing to adopt, share
//! or revoke. A barrier is a latch for each of its rounds; most of the tests are of a latch:
//!
//! | with | the test |
//! |---|---|
//! | `Durability::Volatile` | `latch::beside::on_servers_that_may_forget_they_open_as_well` |
//! | `blocking` | `latch::plain_threads_use_latches_and_barriers` |
//! | a `Client` beside it | `latch::beside::a_client_beside_them_changes_neither` |
//! | TLS | `tls::order::a_latch_opens_over_tls` |
//! | a lock of the same key | `latch::a_lock_and_a_latch_of_one_key_refuse_each_other` |
//! | `shutdown` | `latch::beside::a_shutdown_keeps_arrivals_and_ends_its_own_waits` |
