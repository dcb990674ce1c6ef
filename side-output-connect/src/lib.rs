//! Sources, sinks and stores of jobs.
//!
//! A job reads from [sources](side_output_core::checkpoint::JobSource) that can be read again from a
//! position, writes to [sinks](side_output_core::checkpoint::JobSink), and keeps its checkpoints in a
//! [store](side_output_core::checkpoint::Store). What is here:
//!
//! | feature | sources | sinks | store |
//! | --- | --- | --- | --- |
//! | `files` | [`files::lines`], [`journal()`] | [`files::json_lines`], [`files::csv`] | [`FolderStore`] |
//! | `sqlite` | | [`SqliteStore::insert`], [`upsert`](SqliteStore::upsert), [`delta`](SqliteStore::delta) | [`SqliteStore`] |
//! | none | | [`sink_fn()`] | |
//!
//! # Guarantees
//!
//! What holds after a crash at any point, of the process or of the machine, and the test that shows
//! it.
//!
//! | | | shown by |
//! | --- | --- | --- |
//! | [`files::lines`] | from each position the rest is the same | `from_every_position_the_rest_is_the_same` |
//! | | growth, rotation | `growth_is_followed_line_by_line_and_files_by_their_names`, `a_file_that_is_rotated_is_read_to_its_end_and_then_the_new_one` |
//! | | a file that was cut off or replaced is an error | `a_file_that_was_cut_off_replaced_or_removed_is_an_error_that_names_it`, `a_file_that_is_written_over_or_renamed_in_a_followed_folder_is_an_error` |
//! | | a bad line is a value | `a_line_that_is_no_text_or_too_long_is_a_value_with_its_position` |
//! | [`journal()`] | each record once | `every_record_is_read_once_whichever_operation_fails` |
//! | | damage is an error | `every_flipped_byte_is_an_error_and_so_is_a_missing_one_before_the_last_write` |
//! | | one writer | `a_journal_has_one_writer` |
//! | [`files::json_lines`], [`files::csv`] | exactly once | `what_is_committed_is_exact_whichever_operation_fails`, `what_is_committed_is_exact_when_the_recovery_fails_too` |
//! | | readers see committed data only | `readers_see_what_is_committed_and_nothing_else` |
//! | | files of others are left alone | `files_that_do_not_belong_to_the_job_are_left_alone` |
//! | SQLite sinks | exactly once, with the checkpoint | `results_and_states_are_exact_whichever_statement_fails` |
//! | | cut at the barrier | `sink_03_what_comes_after_the_barrier_belongs_to_the_next_checkpoint` |
//! | | a bad row is refused alone | `sink_08_a_bad_row_is_refused_alone_with_the_reason` |
//! | [`upsert`](SqliteStore::upsert) | newer values stay | `sink_04_an_older_value_never_replaces_a_newer_one_nor_brings_back_what_is_gone`, `sink_05_ties_are_decided_by_the_sequence_in_any_order_of_arrival` |
//! | [`delta`](SqliteStore::delta) | adds once | `deltas_add_up_in_a_column_of_their_own_before_and_after_the_upsert` |
//! | [`sink_fn()`] | at least once | `a_closure_that_fails_is_called_again_after_the_restart` |
//! | [`FolderStore`] | this checkpoint or the one before, whole | `the_store_has_this_checkpoint_or_the_one_before_whichever_operation_fails` |
//! | | damage is an error | `every_flipped_or_missing_byte_is_an_error`, `a_lost_sync_never_gives_another_state` |
//! | | a stale writer is fenced | `a_stale_writer_is_fenced_and_changes_nothing` |
//! | [`SqliteStore`] | this checkpoint or the one before, whole | `results_and_states_are_exact_whichever_statement_fails` |
//! | | damage of a row is an error | `a_changed_byte_of_any_row_is_damage` |
//! | | a stale writer is fenced | `one_writer_one_job_and_a_stale_writer_is_fenced` |
//! | both stores | one process at a time, the next one right after a kill | `a_second_process_is_told_that_the_store_is_in_use` |
//! | | results after kills at any point | `a_job_that_is_killed_at_any_point_gives_the_same_with_a_folder`, `a_job_that_is_killed_at_any_point_gives_the_same_with_a_database` |
//!
//! A disk that loses what it has reported as written is beyond these guarantees. It is found where
//! checksums can: `a_lost_sync_is_found_or_does_no_harm`.

#[cfg(any(feature = "files", feature = "sqlite"))]
mod checksum;
#[cfg(feature = "files")]
mod disk;
#[cfg(feature = "files")]
pub mod files;
#[cfg(feature = "files")]
mod folder;
#[cfg(feature = "files")]
mod journal;
#[cfg(any(feature = "files", feature = "sqlite"))]
mod lock;
#[cfg(any(feature = "files", feature = "sqlite"))]
mod row;
mod sink_fn;
#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "files")]
pub use self::folder::FolderStore;
#[cfg(feature = "files")]
pub use self::journal::{Journal, journal};
pub use self::sink_fn::{SinkFn, sink_fn};
#[cfg(feature = "sqlite")]
pub use self::sqlite::{Delta, Insert, SqliteSink, SqliteStore, Upsert};
