"""The report in a real browser, from file://, with the network off."""

import re
import shutil
import subprocess

import pytest

from gaptron.report.compare import write
from tests.results import many

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium here: the report was not tried in a browser")

# Clicks on the page, and writes what it shows where --dump-dom prints it.
PROBE = """<script>
const report = [], column = (table, i) => [...table.tBodies[0].rows].map(row => row.cells[i].textContent).join("|");
const table = document.querySelector("#ranking table"), heads = table.querySelectorAll("th");
const add = (word, text) => report.push(word + "=" + text);
add("start", column(table, 1));
heads[2].querySelector("button").click(); heads[2].querySelector("button").click();
add("error down", column(table, 2)); add("aria", heads[2].getAttribute("aria-sort"));
heads[1].querySelector("button").click();
add("name up", column(table, 1)); add("aria of the other", heads[2].getAttribute("aria-sort"));
for (const folded of document.querySelectorAll("details")) folded.open = true;
const boxes = [...document.querySelectorAll("figure svg")].map(svg => svg.getBoundingClientRect());
add("figures", boxes.filter(box => box.width > 300 && box.height > 50).length + "/" + boxes.length);
add("background", getComputedStyle(document.body).backgroundColor);
add("ink", getComputedStyle(document.querySelector("figure text")).fill);
const words = [...document.querySelectorAll("figure text")].filter(word => word.textContent.trim());
add("lowest word", Math.min(...words.map(word => word.getBoundingClientRect().height)));
add("wider than the window", document.documentElement.scrollWidth > innerWidth);
const probe = document.createElement("pre");
probe.id = "probe"; probe.textContent = report.join(";");
document.body.append(probe);
</script></body>"""


@pytest.fixture(scope="module")
def probed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    page = write(many(["s", "<r>"], ["zebra", "ant", "mole"], seeds=2, tuned=("ant",)), folder)
    page.write_text(page.read_text(encoding="utf-8").replace("</body>", PROBE), encoding="utf-8")
    return page


def browse(page, tmp_path, *options):
    command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}"]
    command += ["--host-resolver-rules=MAP * ~NOTFOUND", "--proxy-server=127.0.0.1:9", "--window-size=1100,900"]
    command += ["--enable-logging=stderr", "--dump-dom", *options, page.as_uri()]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    (probe,) = re.findall(r'<pre id="probe">(.*?)</pre>', run.stdout)
    return dict(pair.split("=", 1) for pair in probe.split(";")), run.stderr


@pytest.fixture(scope="module")
def light(probed, tmp_path_factory):
    return browse(probed, tmp_path_factory.mktemp("light"))


def test_on_a_phone_text_stays_legible_and_the_page_does_not_scroll_sideways(probed, tmp_path):
    report, _ = browse(probed, tmp_path, "--window-size=500,900")
    assert float(report["lowest word"]) > 8.0 and report["wider than the window"] == "false"


def test_the_console_is_silent(light):
    assert "CONSOLE" not in light[1]


def test_a_click_on_a_header_sorts_and_a_second_reverses(light):
    report = light[0]
    assert report["start"] == "zebra|ant tuned|ant|mole"
    errors = [float(word) for word in report["error down"].split("|")]
    assert errors == sorted(errors, reverse=True) and len(set(errors)) == 4
    assert report["aria"] == "descending"
    assert report["name up"] == "ant|ant tuned|mole|zebra"
    assert report["aria of the other"] == "null"


def test_every_figure_is_shown_and_nothing_is_wider_than_the_window(light):
    assert light[0]["figures"] == "7/7"
    assert light[0]["wider than the window"] == "false"


def test_the_page_follows_the_colour_scheme(light, probed, tmp_path):
    night, console = browse(probed, tmp_path, "--blink-settings=preferredColorScheme=0", "--force-dark-mode")
    assert "CONSOLE" not in console
    assert (light[0]["background"], night["background"]) == ("rgb(254, 254, 254)", "rgb(22, 23, 27)")
    assert light[0]["ink"] != night["ink"]
