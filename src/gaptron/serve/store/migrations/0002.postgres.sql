-- A model's own entries, so that a start need not read those of the others.
create index of_model on log (model, seq);

-- Deciders write decisions under numbers below 0; the leader gives them their places. It says whether it does.
create sequence drafts;
alter table leader add column deciders boolean not null default false;

-- Each model as deciders use it: its learner and rules after entry seq, the bytes of a model file.
create table published (
    model text primary key,
    seq bigint not null,
    body bytea not null
);

-- Where a replay begins: each model as it was when features of old decisions were last forgotten.
create table starts (
    model text primary key,
    seq bigint not null,
    body bytea not null
);
