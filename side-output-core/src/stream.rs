//! The futures runtime: streams of chunks, the hub that readers share, wiring.
//!
//! It drives operators and never decides what a record means.

mod board;
mod boxed;
mod by_clock;
mod chunk;
mod clocked;
pub mod codec;
mod connect;
mod data_stream;
mod driver;
mod filter_map;
mod forward;
mod hub;
mod inputs;
#[cfg(feature = "job")]
pub mod job;
mod keyed;
mod lane;
#[cfg(all(test, loom))]
mod loom_tests;
mod map_async;
mod merge;
mod outlet;
mod parallel;
mod port;
mod records;
mod saving;
mod shutdown;
mod single;
mod source;
mod split;
mod stall;
mod streamed;
mod tee;
#[cfg(all(test, not(loom)))]
mod tests;
mod timestamps;
mod turn;
mod union;
mod waiting;
mod window;
pub mod wiring;
#[cfg(feature = "tokio")]
mod write;

#[cfg(feature = "job")]
pub(crate) use self::board::Board;
pub use self::board::LedgerHandle;
pub use self::boxed::BoxSource;
pub use self::by_clock::{AdvanceSource, ClockSource, ClockStamped, IdleAdvanced};
pub use self::clocked::Clocked;
pub use self::connect::{
    BroadcastConnected, ClockedCoStreams, CoFnStreams, CoStreams, ConnectSource, Connected,
    ConnectedByKey, KeyedCoStreams, KeyedConnected,
};
pub use self::data_stream::{
    ClockedStreams, DataStream, Element, Elements, OperatorStreams, Results,
};
pub use self::driver::{Drive, Driver};
pub use self::filter_map::FilterMap;
pub use self::hub::Hub;
pub use self::inputs::{FromElements, FromStream, FromTryElements, FromTryStream};
pub use self::keyed::{KeyedStream, KeyedStreams};
pub(crate) use self::lane::LaneItem;
pub use self::lane::{Lane, LanePairVisitor, LaneVisitor, Lanes};
pub use self::map_async::{
    AnsweredBy, AsyncDrive, Calls, Never, NoTimer, Retry, RetryPolicy, TellsTime, Timed, Timer,
};
pub use self::outlet::{Boxed, Outlet, SendOutlet, Typed};
pub use self::parallel::{
    DealtSource, Gather, KeyedTask, Parallel, ParallelStreams, PartitionTask,
};
pub use self::port::Port;
pub use self::records::Records;
#[cfg(feature = "job")]
pub use self::saving::Uid;
pub use self::saving::{JobLink, Naming, Saving, Unnamed};
pub use self::shutdown::Shutdown;
pub use self::single::SingleLanes;
pub use self::source::{Fed, Intake, Source};
pub use self::split::{SplitExt, StreamDrive, StreamSource};
pub use self::streamed::{StreamAt, StreamTagOf, Streamed};
pub use self::tee::{Tee, TeeOf, TeeStreams, TeeTag, TeeWiring};
pub use self::timestamps::{IdleSource, Idleness, StampSource, StampStreams, TimestampStreams};
pub use self::turn::HubDriver;
pub use self::union::{UnionInputs, UnionSource};
pub use self::waiting::{Behind, InputIs, InputNow, WaitingFor};
pub use self::window::{NoKey, WindowFunctionStreams, WindowedStream};
#[cfg(feature = "tokio")]
pub use self::write::{WriteTo, write_to};
