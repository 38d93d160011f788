-- The event log. seq defines the order; at is in µs since 1970; body is JSON (serve/events.py).
create table log (
    seq integer primary key,
    model text not null,
    kind text not null,
    event_id text,
    at integer not null,
    body text not null,
    unique (model, event_id, kind)
) strict;

-- When each model was created and deleted.
create index lifetimes on log (seq, model, kind) where kind in ('created', 'deleted');

-- The events of one model, so that a start does not read those of the others.
create index of_model on log (model, seq);

-- A model as it was after event seq, in the format of a model file.
create table snapshots (
    model text not null,
    seq integer not null,
    body blob not null,
    primary key (model, seq)
) strict;

-- Where a complete replay starts: each model as it was when decisions were last redacted.
create table replay_starts (
    model text primary key,
    seq integer not null,
    body blob not null
) strict;

create table keys (
    id text primary key,
    hash blob not null,
    roles text not null,
    model text,
    revoked integer not null
) strict;
