-- The event log. seq defines the order; at is in µs since 1970; body is JSON (serve/events.py).
-- Replicas write decisions with negative numbers from the sequence; the leader replaces them.
create table log (
    seq bigint primary key,
    model text not null,
    kind text not null,
    event_id text,
    at bigint not null,
    body text not null,
    unique (model, event_id, kind)
);
create sequence drafts;

-- When each model was created and deleted.
create index lifetimes on log (seq, model, kind) where kind in ('created', 'deleted');

-- The events of one model, so that a start does not read those of the others.
create index of_model on log (model, seq);

-- A model as it was after event seq, in the format of a model file.
create table snapshots (
    model text not null,
    seq bigint not null,
    body bytea not null,
    primary key (model, seq)
);

-- Where a complete replay starts: each model as it was when decisions were last redacted.
create table replay_starts (
    model text primary key,
    seq bigint not null,
    body bytea not null
);

-- Each model as replicas use it: its learner and configuration after event seq, in the format of a model file.
create table published (
    model text primary key,
    seq bigint not null,
    body bytea not null
);

create table keys (
    id text primary key,
    hash bytea not null,
    roles text not null,
    model text,
    revoked boolean not null
);

-- The leader. Every commit checks the epoch, so that a former leader changes nothing.
create table lease (
    one boolean primary key default true check (one),
    epoch bigint not null,
    backend_pid integer not null,
    heartbeat timestamptz not null,
    replicas_allowed boolean not null default false
);
insert into lease values (true, 0, 0, now());
