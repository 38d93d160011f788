-- The log. seq is the order of everything; at is in µs since 1970; body is JSON (serve/entries.py).
create table log (
    seq integer primary key,
    model text not null,
    kind text not null,
    event text,
    at integer not null,
    body text not null,
    unique (model, event, kind)
) strict;

create index first_rows on log (seq, model) where kind = 'model';

-- A model as it was after entry seq: the bytes of a model file.
create table snapshots (
    model text not null,
    seq integer not null,
    body blob not null,
    primary key (model, seq)
) strict;

create table keys (
    id text primary key,
    hash blob not null,
    roles text not null,
    model text,
    revoked integer not null
) strict;
