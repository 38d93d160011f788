-- The log. seq is the order of everything; at is in µs since 1970; body is JSON (serve/entries.py).
create table log (
    seq bigint primary key,
    model text not null,
    kind text not null,
    event text,
    at bigint not null,
    body text not null,
    unique (model, event, kind)
);

create index first_rows on log (seq, model) where kind = 'model';

-- A model as it was after entry seq: the bytes of a model file.
create table snapshots (
    model text not null,
    seq bigint not null,
    body bytea not null,
    primary key (model, seq)
);

create table keys (
    id text primary key,
    hash bytea not null,
    roles text not null,
    model text,
    revoked boolean not null
);

-- Who writes: every commit names the epoch, and one that is over changes no row.
create table leader (
    one boolean primary key default true check (one),
    epoch bigint not null,
    process integer not null,
    beat timestamptz not null
);
insert into leader values (true, 0, 0, now());
