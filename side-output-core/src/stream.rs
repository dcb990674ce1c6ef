//! The futures runtime: streams of chunks, the hub that readers share, wiring.
//!
//! It drives operators and never decides what a record means.

mod board;
mod by_clock;
mod clocked;
mod connect;
mod data_stream;
mod driver;
mod feed_source;
mod filter_map;
mod forward;
mod hub;
mod keyed;
#[cfg(all(test, loom))]
mod loom_tests;
mod parallel;
mod port;
mod source;
mod split;
mod stall;
#[cfg(all(test, not(loom)))]
mod tests;
mod timestamps;
mod turn;
mod union;
mod window;
pub mod wiring;

pub use self::board::LedgerHandle;
pub use self::by_clock::{AdvanceFeed, ClockFeed, ClockStamped, IdleAdvanced};
pub use self::clocked::Clocked;
pub use self::connect::{
    BroadcastConnected, ClockedCoStreams, CoFnStreams, CoStreams, ConnectFeed, Connected,
    KeyedCoStreams, KeyedConnected,
};
pub use self::data_stream::{
    ClockedStreams, DataFeed, DataStream, Element, ElementFeed, Elements, OperatorStreams, Results,
};
pub use self::driver::{Drive, Driver, Fed, Feed, Intake, StreamFeed, TryStreamFeed};
pub use self::feed_source::FeedSource;
pub use self::filter_map::FilterMap;
pub use self::hub::Hub;
pub use self::keyed::{KeyedStream, KeyedStreams};
pub use self::parallel::{
    DealtSource, Gather, KeyedTask, Parallel, ParallelStreams, PartitionTask,
};
pub use self::port::Port;
pub use self::source::{BoxSource, Boxed, Outlet, SendOutlet, Source, Typed};
pub use self::split::{SplitExt, StreamDrive, StreamSource};
pub use self::timestamps::{IdleFeed, Idleness, StampFeed, StampStreams, TimestampStreams};
pub use self::turn::HubDriver;
pub use self::union::{UnionInputs, UnionSource};
pub use self::window::{NoKey, WindowFunctionStreams, WindowedStream};
