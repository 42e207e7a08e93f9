"""Streams of records out of a simulation, commands into it; transports translate both."""

from mjhost.streams.hub import (
    Handler,
    Outlet,
    PluginStreams,
    Sample,
    StreamHub,
    StreamInfo,
    StreamSubscription,
)
from mjhost.streams.records import Record
from mjhost.streams.stamp import Stamp

__all__ = [
    "Handler",
    "Outlet",
    "PluginStreams",
    "Record",
    "Sample",
    "Stamp",
    "StreamHub",
    "StreamInfo",
    "StreamSubscription",
]
