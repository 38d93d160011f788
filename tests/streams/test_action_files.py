"""Files of rounds with named actions: what each format says, and what is wrong with hostile ones."""

import gzip
import inspect
import json
import math

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from gaptron.errors import InputError, SettingError, StreamError
from gaptron.streams.action_worlds import action_world
from gaptron.streams.actions import ACTION_FORMATS, open_actions, save_actions
from gaptron.streams.json_lines import DamagedLogWarning

ADF = """shared |C user=student hour:14
 'a7 |A topic=sport age:3
0:-1:0.8 'a9|A topic=news age:1

shared |C user=parent hour:15
0:-0.25:0.5 'a7|A topic=sport age:4
'a8|A topic=art breaking
'a9|A topic=news age:2
"""
CONTEXTS = ({"C.user": "student", "C.hour": 14.0}, {"C.user": "parent", "C.hour": 15.0})
ACTIONS = (
    {"a7": {"A.topic": "sport", "A.age": 3.0}, "a9": {"A.topic": "news", "A.age": 1.0}},
    {
        "a7": {"A.topic": "sport", "A.age": 4.0},
        "a8": {"A.topic": "art", "A.breaking": True},
        "a9": {"A.topic": "news", "A.age": 2.0},
    },
)


def dsjson(cost, probability, order, actions, context, p=None, **more):
    line = {
        "_label_cost": cost,
        "_label_probability": probability,
        "_label_Action": order[0],
        "a": order,
        "c": {**context, "_multi": actions},
    }
    return json.dumps(line | ({} if p is None else {"p": p}) | more) + "\n"


DSJSON = dsjson(
    -1,
    0.8,
    [2, 1],
    [{"_tag": "a7", "A": {"topic": "sport", "age": 3}}, {"_tag": "a9", "A": {"topic": "news", "age": 1}}],
    {"C": {"user": "student", "hour": 14}},
    [0.8, 0.2],
) + dsjson(
    -0.25,
    0.5,
    [1, 3, 2],
    [
        {"_tag": "a7", "A": {"topic=sport": 1, "age": 4}},
        {"_tag": "a8", "A": {"topic": "art", "breaking": True}},
        {"_tag": "a9", "A": [{"topic": "news"}, {"age": 2}]},
    ],
    {"C": {"user": "parent", "hour": 15}},
    [0.5, 0.2, 0.3],
)
JSONL = (
    '{"context":{"C":{"user":"student","hour":14}},"actions":{"a7":{"A.topic":"sport","A.age":3},"a9":{"A":{"topic":'
    '"news","age":1}}},"played":"a9","probability":0.8,"reward":1,"distribution":{"a7":0.2,"a9":0.8}}\n'
    '{"context":{"C.user":"parent","C.hour":15},"actions":[{"id":"a7","features":{"A.topic":"sport","A.age":4}},'
    '{"id":"gone"},{"id":"a8","features":{"A.topic":"art","A.breaking":true}},{"id":"a9","features":{"A.topic":"news",'
    '"A.age":2}}],"excluded":["gone"],"played":"a7","probability":0.5,"reward":0.25,"distribution":{"a7":0.5,"a8":0.3,'
    '"a9":0.2,"gone":0}}\n'
)
CSV = """round,action,C.user,C.hour,A.topic,A.age,A.breaking,probability,reward
1,a7,student,14,sport,3,,0.2,
1,a9,student,14,news,1,,0.8,1
2,a7,parent,15,sport,4,,0.5,0.25
2,a8,parent,15,art,,true,0.3,
2,a9,parent,15,news,2,,0.2,
"""
REWARDS_JSONL = """{"actions":{"x":{},"y":{}},"rewards":{"y":1,"x":0.5}}
{"actions":{"z":{}},"rewards":{"z":0}}
"""


def written(folder, name, text):
    path = folder / name
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def without_gaps(dicts):
    return [{name: value for name, value in each.items() if value is not None} for each in dicts]


# --- what a file says ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"), [("log.vw", ADF), ("log.dsjson.gz", DSJSON), ("log.jsonl", JSONL), ("log.csv", CSV)]
)
def test_every_format_reads_the_same_log(name, text, tmp_path):
    log = open_actions(written(tmp_path, name, text))
    assert log.kind == "played" and log.named and len(log) == 2
    assert without_gaps(log.contexts) == list(CONTEXTS)
    for actions, expected in zip(log.actions, ACTIONS):
        assert list(actions) == list(expected)
        found = without_gaps(actions.values())
        found = [{n: True if v == "true" else v for n, v in each.items()} for each in found]  # a table holds text
        assert found == list(expected.values())
    assert [log.action(t) for t in range(2)] == ["a9", "a7"]
    assert log.propensity.tolist() == [0.8, 0.5] and log.reward.tolist() == [1.0, 0.25]
    assert log.counts.tolist() == [2, 3] and log.first.tolist() == [0, 2, 5]
    if "vw" in name:
        assert log.distribution is None
    else:
        assert log.distribution_at(0).tolist() == [0.2, 0.8]
        assert log.distribution_at(1).tolist() == [0.5, 0.3, 0.2]


def test_parquet_is_read_as_csv_is(tmp_path):
    source = written(tmp_path, "log.csv", CSV)
    parquet.write_table(csv.read_csv(pa.BufferReader(CSV.encode())), tmp_path / "log.parquet")
    one, other = open_actions(source), open_actions(tmp_path / "log.parquet")
    assert [without_gaps(each.values()) for each in one.actions] == [without_gaps(e.values()) for e in other.actions]
    assert one.contexts == other.contexts and one.codes.tolist() == other.codes.tolist()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("s.jsonl", '{"actions":{"x":{"n":1},"y":{"n":2}},"right":"y"}\n{"actions":{"z":{"n":3}},"right":"z"}\n'),
        ("s.csv", "round,action,n,m,right\n1,x,1,0,\n1,y,2,0,1\n2,z,3,1,1\n"),
    ],
)
def test_full_information(name, text, tmp_path):
    stream = open_actions(written(tmp_path, name, text))
    assert stream.kind == "right" and stream.codes.tolist() == [1, 0] and stream.action(0) == "y"
    assert [[each["n"] for each in actions.values()] for actions in stream.actions] == [[1, 2], [3]]


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        (
            "s.jsonl",
            '{"actions":{"x":{},"y":{}},"rewards":{"y":1,"x":0.5}}\n{"actions":{"z":{}},"rewards":{"z":0}}\n',
            {},
        ),
        ("s.csv", "round,action,n,reward\n1,x,1,0.5\n1,y,2,1\n2,z,3,0\n", {}),
        ("s.vw", "1:0.5 'x|A n\n2:0 'y|A m\n\n1:1 'z|A n\n", {"costs": "0..1"}),
    ],
)
def test_rewards_of_every_action(name, text, options, tmp_path):
    stream = open_actions(written(tmp_path, name, text), **options)
    assert stream.kind == "rewards" and stream.reward.tolist() == [0.5, 1.0, 0.0] and not len(stream.codes)


def test_a_column_of_the_table_marks_the_action_played(tmp_path):
    text = "t,id,f,reward,p,chosen\n1,x,1,0,0.3,0\n1,y,2,0,0.7,1\n"
    log = open_actions(
        written(tmp_path, "s.csv", text), round="t", action="id", propensity="p", played="chosen", context=[]
    )
    assert log.kind == "played" and log.codes.tolist() == [1] and log.distribution.tolist() == [0.3, 0.7]


def test_the_context_of_a_table_is_found_or_named(tmp_path):
    path = written(tmp_path, "s.csv", "round,action,a,b,right\n1,x,1,5,1\n1,y,1,6,0\n2,x,2,5,1\n")
    found = open_actions(path)
    assert found.contexts == ({"a": 1.0}, {"a": 2.0}) and "columns of the context: a" in found.notes
    named = open_actions(path, context=[])
    assert named.contexts == ({}, {}) and named.actions[1] == {"x": {"a": 2.0, "b": 5.0}}
    with pytest.raises(StreamError, match="line 3: column b of the context differs"):
        open_actions(path, context=["b"])


@pytest.mark.parametrize(
    ("cost", "costs", "reward"), [(-0.25, None, 0.25), (0.25, "0..1", 0.75), (-1, "-1..1", 1.0), (0, "-1..1", 0.5)]
)
def test_costs_become_rewards(cost, costs, reward, tmp_path):
    path = written(tmp_path, "log.vw", f"0:{cost}:0.5 |A x\n|A y\n")
    assert open_actions(path, costs=costs).reward.tolist() == [reward]


@pytest.mark.parametrize(
    ("text", "ids", "named"),
    [
        ("|A id=x n\n0:-1:1 |A id=y n\n", ["x", "y"], True),
        ("'x |A id=x n\n0:-1:1 'y |A id=y n\n", ["x", "y"], True),
        ("|A n\n0:-1:1 |A n\n", [0, 1], False),
    ],
)
def test_where_ids_are(text, ids, named, tmp_path):
    log = open_actions(written(tmp_path, "log.vw", text))
    assert list(log.actions[0]) == ids and log.named is named and bool(log.notes) is not named
    assert list(log.actions[0].values()) == [{"A.n": True}, {"A.n": True}]


def test_a_feature_may_be_named_as_the_id(tmp_path):
    text = "'t |A sku=x n\n0:-1:1 't |A sku=y n\n"
    log = open_actions(written(tmp_path, "log.vw", text), id="A.sku")
    assert list(log.actions[0]) == ["x", "y"]
    assert list(open_actions(written(tmp_path, "log.vw", text), id="position").actions[0]) == [0, 1]


def test_a_feature_with_several_words_keeps_them_all(tmp_path):
    log = open_actions(written(tmp_path, "log.vw", "0:0:1 |A genre=drama genre=comedy w:2 w:3\n"))
    assert log.actions[0][0] == {"A.genre": "drama", "A.genre=comedy": True, "A.w": 5.0}
    line = {"context": {"tags": ["new", "hot"], "v": [1, None, 3]}, "actions": {"x": {}}, "right": "x"}
    stream = open_actions(written(tmp_path, "s.jsonl", json.dumps(line)))
    assert stream.contexts[0] == {"tags.new": True, "tags.hot": True, "v.0": 1, "v.1": None, "v.2": 3}


@pytest.mark.parametrize(("number", "value"), [("user:3", 3.0), ("user", True)])
def test_a_feature_may_be_a_word_and_a_number_in_any_order(number, value, tmp_path):
    for tokens in (f"user=student {number}", f"{number} user=student"):
        path = tmp_path / "log.vw"
        path.write_text(f"shared | {tokens}\n0:-1:0.8 'a |\n'b |\n")
        assert open_actions(path).contexts[0] == {"user": value, "user=student": True}


def test_a_byte_order_mark_comments_and_line_ends_of_windows(tmp_path):
    data = b"\xef\xbb\xbf" + ADF.replace("\n", "\r\n").encode()
    log = open_actions(written(tmp_path, "log.vw", data))
    assert len(log) == 2 and list(log.actions[1]) == ["a7", "a8", "a9"]


def test_rounds_that_were_not_activated_are_left_out_and_counted(tmp_path):
    deferred = dsjson(-0.0, 0.5, [1], [{"_tag": "z"}], {}, _skipLearn=True)
    log = open_actions(written(tmp_path, "log.dsjson", DSJSON + deferred))
    assert len(log) == 2 and log.notes == ("1 rounds with _skipLearn were left out",)


def test_features_of_personalizer_have_the_names_that_rank_had(tmp_path):
    rank = [{"user": {"segment": "student"}, "_note": 1}, {"hour": 14, "town": ""}]
    topics = [[{"topic": "sport", "id": 5}, {"scores": [0.5, 2]}], []]
    actions = [{"_tag": name, "i": {"constant": 1, "id": name}, "j": features} for name, features in zip("ab", topics)]
    log = open_actions(written(tmp_path, "log.dsjson", dsjson(-1, 0.5, [2, 1], actions, {"FromUrl": rank})))
    assert log.contexts[0] == {"user.segment": "student", "hour": 14, "town": None}
    assert log.actions[0] == {"a": {"topic": "sport", "id": 5, "scores.0": 0.5, "scores.1": 2}, "b": {}}
    assert log.action(0) == "b"
    others = [{"_tag": "a", "i": {"id": "a"}, "Topic": {"kind": "news"}}]
    log = open_actions(written(tmp_path, "log.dsjson", dsjson(-1, 1.0, [1], others, {"FromUrl": rank})))
    assert log.actions[0] == {"a": {"Topic.kind": "news"}}


def test_parts_of_a_stream(tmp_path):
    log = open_actions(written(tmp_path, "log.dsjson", DSJSON))
    rest = log[1:]
    assert (
        len(rest) == 1
        and rest.action(0) == "a7"
        and rest.distribution_at(0).tolist() == log.distribution_at(1).tolist()
    )
    rewards = open_actions(written(tmp_path, "s.csv", "round,action,n,reward\n1,x,1,0.5\n1,y,2,1\n2,z,3,0\n"))
    assert rewards[1:].reward.tolist() == [0.0] and len(rewards[5:]) == 0
    with pytest.raises(InputError, match="slice"):
        rewards[0]


def test_numbers_that_are_not_finite_are_missing_in_every_format(tmp_path):
    files = {
        "s.csv": "round,action,n,right\n1,x,inf,1\n1,y,2,0\n",
        "s.jsonl": '{"actions":{"x":{"n":Infinity},"y":{"n":2}},"right":"x"}',
        "s.vw": "0:-1:1 'x|A n:inf\n'y|A n:2\n",
    }
    for name, text in files.items():
        stream = open_actions(written(tmp_path, name, text))
        assert [list(each.values()) for each in stream.actions[0].values()] == [[None], [2]]
        save_actions(stream, tmp_path / "again.jsonl")
        assert open_actions(tmp_path / "again.jsonl").actions == stream.actions


# --- written and read again ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["again.dsjson", "again.jsonl", "again.jsonl.gz"])
@pytest.mark.parametrize(("source", "text"), [("log.vw", ADF), ("log.jsonl", JSONL), ("log.csv", CSV)])
def test_a_log_is_the_same_when_it_is_written_and_read(name, source, text, tmp_path):
    log = open_actions(written(tmp_path, source, text))
    save_actions(log, tmp_path / name)
    again = open_actions(tmp_path / name)
    assert again.contexts == log.contexts and again.actions == log.actions and again.kind == log.kind
    assert [list(each) for each in again.actions] == [list(each) for each in log.actions]
    for field in ("codes", "reward", "propensity"):
        assert getattr(again, field).tolist() == getattr(log, field).tolist()
    assert (again.distribution is None) is (log.distribution is None)
    if log.distribution is not None:
        assert again.distribution.tolist() == log.distribution.tolist()


def test_features_of_any_name_are_the_same_when_they_are_written_and_read(tmp_path):
    context = {"_x": 1, "a=b": 1, "a": 3, "=": True, "C.z": 2, "": 5, "id": "p"}
    actions = {"p": {"_y": "w", "id": "p", "i.id": "8", "A.q": 1, "k=v": True}, "q": {}}
    line = {"context": context, "actions": actions, "played": "p", "probability": 0.5, "reward": 1}
    log = open_actions(written(tmp_path, "log.jsonl", json.dumps(line)))
    for name in ("again.jsonl", "again.dsjson"):
        save_actions(log, tmp_path / name)
        again = open_actions(tmp_path / name)
        assert (again.contexts, again.actions) == ((context,), (actions,))


def test_streams_without_decisions_are_written_as_json_lines_only(tmp_path):
    stream = open_actions(written(tmp_path, "s.csv", "round,action,n,m,right\n1,1,1,0,\n1,2,2,0,1\n2,3,3,1,1\n"))
    save_actions(stream, tmp_path / "s.jsonl")
    again = open_actions(tmp_path / "s.jsonl")
    assert again.actions == stream.actions and again.codes.tolist() == [1, 0] and list(again.actions[0]) == [1, 2]
    with pytest.raises(InputError, match="use jsonl"):
        save_actions(stream, tmp_path / "s.dsjson")
    with pytest.raises(StreamError, match="cannot be written: give format="):
        save_actions(stream, tmp_path / "s.vw")
    rewards = open_actions(written(tmp_path, "r.csv", "round,action,n,reward\n1,x,1,0.5\n1,y,2,1\n2,z,3,0\n"))
    save_actions(rewards, tmp_path / "r.jsonl")
    assert open_actions(tmp_path / "r.jsonl").reward.tolist() == [0.5, 1.0, 0.0]


def test_a_name_that_utf_8_cannot_encode_is_refused_and_leaves_the_file(tmp_path):
    path = written(tmp_path, "s.jsonl", '{"actions":{"\\ud800":{}},"right":"\\ud800"}\n')
    stream, target = open_actions(path), written(tmp_path, "t.jsonl", "before")
    with pytest.raises(InputError, match="surrogate"):
        save_actions(stream, target)
    assert target.read_text() == "before"


# --- hostile files ------------------------------------------------------------------------------------------

ROUND = '{"actions":{"a":{},"b":{}},"played":"a","probability":0.5,"reward":1}\n'


def changed(**fields):
    line = json.loads(ROUND) | fields
    return json.dumps({name: value for name, value in line.items() if value is not ...}) + "\n"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "not JSON"),
        ("[1]", "not a JSON object"),
        ('{"actions":' * 100_000, "not JSON"),
        (changed(actions=...), "field 'actions' is missing"),
        (changed(actions={}), "there is no action"),
        (changed(actions={f"k{k}": {} for k in range(1_000)}, played="k3"), "1000 actions, and a round has 1 to 200"),
        (changed(actions=[{"id": "a"}, {"id": "a"}]), "two actions have the id 'a'"),
        (changed(actions=[{"id": 7}, {"id": "7"}], played=7), "two actions have the id '7'"),
        (changed(actions=[{"id": True}]), "not a text or a whole number"),
        (changed(actions=[{"name": "a"}]), "field 'id' is missing"),
        (changed(actions={"a": 3}), "not an object of features"),
        (changed(actions={"a": {"x": {"y": 1}, "x.y": 2}}), "appears twice"),
        (changed(actions={"a": {"x": [[1]]}}), "array of arrays"),
        (changed(context=[1]), "context is .*not an object"),
        (changed(played="c"), 'played is "c", which is not the id'),
        (changed(excluded=["a"]), 'played is "a", which is not the id of an action that could be played'),
        (changed(excluded=["a", "b"]), "all actions are excluded"),
        (changed(excluded="a"), "excluded is not an array"),
        (changed(right="a"), "one of the fields played"),
        (changed(played=...), "one of the fields played"),
        (changed(probability=...), "field 'probability' is missing"),
        (changed(probability="half"), "probability is .*not a number"),
        (changed(probability=0), "propensity 0 is not between 1e-06 and 1"),
        (changed(probability=9e-7), "propensity 9e-07 is not between 1e-06 and 1"),
        (changed(probability=1.1), "propensity 1.1 is not between"),
        (changed(probability=math.nan), "propensity nan"),
        (changed(reward=1.5), r"reward 1.5 is not in \[0, 1\]"),
        (changed(reward=math.nan), "reward nan"),
        (changed(reward=10**400), "reward is too large"),
        (changed(distribution={"a": 0.5, "b": 0.5}), "some rounds have a distribution and some do not"),
        (changed(played=..., right="a"), "this round has the right action, but the first has"),
    ],
)
def test_a_bad_line_is_one_error_that_names_it(line, problem, tmp_path):
    path = written(tmp_path, "log.jsonl", ROUND + ROUND + line.rstrip("\n") + "\n" + ROUND)
    with pytest.raises(StreamError, match=problem) as caught:
        open_actions(path)
    assert caught.value.line == 3 and str(path) in str(caught.value) and len(str(caught.value)) < 600


@pytest.mark.parametrize(
    ("distribution", "problem"),
    [
        ({"a": 0.5}, "field 'b' is missing"),
        ({"a": 0.5, "b": 0.4}, "sums to 0.9"),
        ({"a": 1.5, "b": -0.5}, "negative"),
        ({"a": 0.4, "b": 0.6}, "differs from the distribution"),
        ({"a": 0.5, "b": 0.5, "c": 0}, 'names "c"'),
        ({"a": 1e308, "b": 1e308}, "sums to inf"),
    ],
)
def test_impossible_distributions(distribution, problem, tmp_path):
    with pytest.raises(StreamError, match=problem):
        open_actions(written(tmp_path, "log.jsonl", changed(distribution=distribution)))


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("no bar\n", 1, r"no \|"),
        ("0:-1:0.5 |A x\n0:-1:0.5 |A y\n", 1, "lines 1 and 2 both have a cost"),
        ("|A x\n|A y\n", 1, "no action of this round has a cost"),
        ("\n\n0:-1 |A x\n|A y\n", 3, "a cost but no probability"),
        ("0:-1:2 |A x\n", 1, "propensity 2 is not between"),
        ("0:-1:1e-7 |A x\n", 1, "propensity 1e-07 is not between"),
        ("0:3:0.5 |A x\n", 1, r"cost 3 is not in \[-1, 0\].*costs='0..1'"),
        ("0:-1:0.5 1.5 |A x\n", 1, "is not action:cost:probability"),
        ("0:a:b |A x\n", 1, "is not action:cost:probability"),
        ("0:-1:1 |A x\nshared |C y\n", 1, "line 2 is shared, but not the first"),
        ("shared |C y\n", 1, "no action of this round has a cost"),
        ("0:-1:1 |A x:abc\n", 1, "is not a number"),
        ("0:-1:1 |A :3\n", 1, "a value without a feature"),
        ("'x|A a\n0:-1:1 'x|A b\n", 1, "two actions have the id 'x'"),
        ("'x|A a\n0:-1:1 |A b\n", 1, "action 2 has no tag"),
        (b"0:-1:1 |A \xff\n", 1, "not UTF-8"),
        ("|A x\n" * 1_000, 202, "more than 200 actions"),
    ],
)
def test_bad_blocks_of_vw_text(text, line, problem, tmp_path):
    with pytest.raises(StreamError, match=problem) as caught:
        open_actions(written(tmp_path, "log.vw", text))
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"c": 3}, "c is not an object"),
        ({"c": {"_multi": []}}, "at least one action"),
        ({"c": {}}, "field '_multi' is missing"),
        ({"a": [1, 1]}, "a must name each of the 1 actions"),
        ({"a": "1"}, "a must name each"),
        ({"_label_Action": 2}, "_label_Action is 2, not one of 1..1"),
        ({"_label_Action": True}, "_label_Action is true"),
        ({"_label_probability": 0.4, "p": [0.5]}, "p starts with 0.5"),
        ({"p": [0.5, 0.5]}, "p has 2 entries"),
        ({"_label_cost": 0.5}, r"cost 0.5 is not in \[-1, 0\]"),
        ({"_label_cost": None}, "_label_cost is null"),
        ({"_outcomes": []}, "several slots"),
        ({"c": {"_multi": [{"_tag": 3}]}}, "_tag of action 1"),
        ({"c": {"FromUrl": 3, "_multi": [{"_tag": "z", "j": []}]}}, r"c.FromUrl\[0\] is 3, not an object"),
        ({"c": {"FromUrl": [], "_multi": [{"_tag": "z", "j": 5}]}}, r"j of action 1 of c._multi\[0\] is 5"),
    ],
)
def test_bad_lines_of_dsjson(changes, problem, tmp_path):
    good = dsjson(-1, 1.0, [1], [{"_tag": "z", "n": 1}], {"u": 1})
    with pytest.raises(StreamError, match=problem) as caught:
        open_actions(written(tmp_path, "log.dsjson", good + json.dumps(json.loads(good) | changes) + "\n"))
    assert caught.value.line == 2


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("a,b\n1,2\n", None, "round='round' is not one of the columns a, b"),
        ("round,action,n\n1,x,1\n1,y,2\n", 2, "neither a column reward nor a column right"),
        ("round,action,n,right\n1,x,1,1\n2,x,1,1\n1,x,2,1\n", 4, "appears again: sort the rows"),
        ("round,action,n,right\n1,x,1,1\n1,y,1,1\n", 3, "a second action of its round is right"),
        ("round,action,n,right\n1,x,1,0\n1,y,1,0\n", 2, "no action of this round is right"),
        ("round,action,n,right\n1,x,1,yes\n1,y,1,0\n", 2, "column right: 'yes' is neither 1 nor 0"),
        ("round,action,n,right\n1,x,1,1\n1,x,1,0\n", 2, "two actions have the id 'x'"),
        ("round,action,n,right\n1,x,1,1\n,y,1,0\n", 3, "no number of its round"),
        ("round,action,n,right\n1,,1,1\n1,y,1,0\n", 2, "has no id"),
        ("round,action,n,right\n1,x,1,1\n1,y,1\n", 3, "3 cells where 4 are expected"),
        ("round,action,n,reward\n1,x,1,1\n1,y,1,\n", 3, "no column of propensities"),
        ("round,action,n,reward,propensity\n1,x,1,1,0.5\n1,y,1,1,0.5\n", 3, "a second action of its round is played"),
        ("round,action,n,reward,propensity\n1,x,1,1,\n1,y,1,,\n", 2, "the action played has no propensity"),
        ("round,action,n,reward,propensity\n1,x,1,1,0\n1,y,1,,\n", 2, "propensity 0 is not between"),
        ("round,action,n,reward,propensity\n1,x,1,2,1\n1,y,1,,\n", 2, "reward 2 is not in"),
        ("round,action,n,reward,propensity\n1,x,1,a,1\n1,y,1,,\n", 2, "column reward: 'a' is not a number"),
        ("round,action,n,right\n1,x,1,1\n2,y,1,1\n", None, "every round has a single row"),
        ("round,n,n,right\n1,x,1,1\n", None, "two columns are named n"),
        ("round,action,n,right\n", None, "contains no rounds"),
    ],
)
def test_bad_tables(text, line, problem, tmp_path):
    with pytest.raises(StreamError, match=problem) as caught:
        open_actions(written(tmp_path, "s.csv", text))
    assert caught.value.line == line


@pytest.mark.parametrize("name", ["log.vw.gz", "log.csv.gz"])
def test_truncated_compressed_text_is_one_error(name, tmp_path):
    text = {"log.vw.gz": ADF, "log.csv.gz": CSV}[name]
    path = written(tmp_path, name, text)
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(StreamError, match="the compressed data is damaged"):
        open_actions(path)


@pytest.mark.parametrize("name", ["log.jsonl", "log.jsonl.gz", "log.dsjson"])
def test_an_incomplete_last_line_is_skipped_with_a_warning(name, tmp_path):
    text = DSJSON if "dsjson" in name else JSONL
    path = written(tmp_path, name, text)
    path.write_bytes(path.read_bytes()[:-12] if name.endswith(".gz") else path.read_bytes()[:-40])
    with pytest.warns(DamagedLogWarning):
        assert len(open_actions(path)) <= 2


def test_damaged_lines_are_skipped_on_request_but_impossible_numbers_never(tmp_path):
    path = written(tmp_path, "log.jsonl", ROUND + "{\n" + ROUND)
    with pytest.warns(DamagedLogWarning, match="line 2"):
        assert len(open_actions(path, damaged="skip")) == 2
    with pytest.raises(StreamError, match="reward 3"):
        open_actions(written(tmp_path, "log.jsonl", ROUND + changed(reward=3)), damaged="skip")


def test_a_line_of_a_megabyte_is_read(tmp_path):
    wide = {f"feature {k}": k for k in range(40_000)}
    line = {"actions": {"x": wide, "y": {}}, "right": "y"}
    assert len(open_actions(written(tmp_path, "s.jsonl", json.dumps(line))).actions[0]["x"]) == 40_000
    text = "0:-1:1 |A " + " ".join(f"f{k}:{k}" for k in range(40_000)) + "\n"
    assert len(open_actions(written(tmp_path, "s.vw", text)).actions[0][0]) == 40_000


@pytest.mark.parametrize("name", ["none.jsonl", "none.vw", "none.dsjson", "none.csv"])
def test_empty_files(name, tmp_path):
    with pytest.raises(StreamError, match="contains no rounds"):
        open_actions(written(tmp_path, name, ""))


def test_options_of_other_formats_and_unknown_ones(tmp_path):
    path = written(tmp_path, "log.jsonl", ROUND)
    for option, value in {"costs": "0..1", "id": "tag", "round": "t", "context": []}.items():
        with pytest.raises(StreamError, match=f"{option}= is not for jsonl files"):
            open_actions(path, **{option: value})
    for costs in ("1..0", "0", "a..b", "0..inf", "0..0"):
        with pytest.raises(SettingError, match="must be the lowest and the highest cost"):
            open_actions(written(tmp_path, "log.vw", ADF), costs=costs)
    with pytest.raises(SettingError, match="damaged="):
        open_actions(path, damaged="maybe")
    with pytest.raises(StreamError, match="unknown format of actions"):
        open_actions(written(tmp_path, "log.txt", ROUND))
    with pytest.raises(StreamError, match="file not found"):
        open_actions(tmp_path / "missing.vw")
    with pytest.raises(StreamError, match="leave it out"):
        open_actions(written(tmp_path, "log.vw", ADF), damaged="skip")


def test_every_option_of_the_reader_belongs_to_a_format():
    options = set(inspect.signature(open_actions).parameters) - {"source", "format"}
    assert options == {option for form in ACTION_FORMATS.values() for option in form.options}


def test_numbers_of_a_table_may_be_text_where_any_is(tmp_path):
    text = "round,action,size,when,right\n1,x,3,2026-01-31,1\n1,y,NA,2026-02-01,0\n1,z,wide,,0\n"
    stream = open_actions(written(tmp_path, "s.csv", text))
    assert [each["size"] for each in stream.actions[0].values()] == ["3", None, "wide"]
    assert [each["when"] for each in stream.actions[0].values()] == ["2026-01-31", "2026-02-01", None]


@pytest.mark.filterwarnings("ignore::gaptron.streams.json_lines.DamagedLogWarning")
@pytest.mark.parametrize(
    ("name", "text"), [("log.vw", ADF), ("log.dsjson", DSJSON), ("log.jsonl", JSONL), ("log.csv", CSV), ("c.gz", ADF)]
)
def test_damaged_bytes_are_read_or_refused(name, text, tmp_path):
    rng = np.random.default_rng(11)
    path = written(tmp_path, name if name != "c.gz" else "log.vw.gz", text)
    good, read = path.read_bytes(), 0
    for _ in range(150):
        data = bytearray(good)
        for at in rng.integers(len(data), size=rng.integers(1, 4)):
            data[at] = rng.integers(256)
        if rng.random() < 0.3:
            del data[rng.integers(len(data)) :]
        path.write_bytes(bytes(data))
        try:
            stream = open_actions(path)
        except StreamError as error:
            assert str(path) in str(error)
        else:
            assert len(stream.records) == len(stream) == len(stream.actions)  # what a learner takes
            read += 1
    assert read < 150


# --- worlds -------------------------------------------------------------------------------------------------


def test_worlds_by_name_are_those_of_their_generators():
    stream, world = open_actions("news:rounds=20,seed=3"), action_world("news", 20, 3)
    assert stream.kind == "rewards" and stream.name == "news:rounds=20,seed=3" and len(stream) == 20
    assert list(stream.contexts) == world.contexts
    assert [list(each.items()) for each in stream.actions] == world.actions
    assert stream.reward.tolist() == world.rewards.tolist() and stream.expected.tolist() == world.expected.tolist()
    assert stream[3:].expected.tolist() == world.expected[stream.first[3] :].tolist()
    with pytest.raises(InputError, match="no option 'worlds'; its options are: rounds, seed"):
        open_actions("news:worlds=3")
    with pytest.raises(InputError, match="seed must not be negative"):
        open_actions("news:seed=-1")
    with pytest.raises(InputError, match="news is built in"):
        open_actions("news", costs="0..1")
