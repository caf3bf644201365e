"""How `conformance/run` counts. No suite and no server: records as the suite writes them."""

import importlib.machinery
import importlib.util
import unittest
import unittest.mock
from pathlib import Path

PATH = Path(__file__).resolve().parents[2] / "conformance/run"
loader = importlib.machinery.SourceFileLoader("conformance_run", str(PATH))
run = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
loader.exec_module(run)


def check(name: str, status: str, message: str = "") -> dict:
    return {"id": name, "status": status, "errorMessage": message, "description": name}


WIRE = check("wire-schema-valid", "SUCCESS")


class Counting(unittest.TestCase):
    def tally(self, records: dict, scored=("ping",), others=()):
        return run.count("all", list(scored), list(others), records)

    def test_a_scenario_passes_on_a_check_of_its_own(self):
        tally = self.tally({"ping": [check("ping", "SUCCESS"), WIRE]})
        self.assertEqual((tally.scored_passed, tally.scored, tally.problems), (1, 1, []))

    def test_the_wire_check_alone_is_no_pass(self):
        tally = self.tally({"ping": [check("ping", "SKIPPED"), WIRE]})
        self.assertEqual((tally.scored_passed, tally.skipped), (0, 1))
        self.assertEqual([p.check for p in tally.problems], ["checked-nothing"])

    def test_a_scenario_without_a_record_failed(self):
        tally = self.tally({})
        self.assertEqual((tally.scored_passed, tally.problems[0].check), (0, "no-record"))

    def test_a_failed_wire_check_fails_its_scenario(self):
        records = {"ping": [check("ping", "SUCCESS"), check("wire-schema-valid", "FAILURE", "bad")]}
        tally = self.tally(records)
        self.assertEqual((tally.scored_passed, tally.problems[0].kind), (0, "failure"))

    def test_a_warning_leaves_the_scenario_passed_and_is_a_problem(self):
        tally = self.tally({"ping": [check("ping", "SUCCESS"), check("order", "WARNING", "shuffled")]})
        self.assertEqual(tally.scored_passed, 1)
        self.assertEqual([(p.kind, p.message) for p in tally.problems], [("warning", "shuffled")])

    def test_a_check_that_fails_twice_is_one_problem_and_failure_outranks_warning(self):
        checks = [check("ping", "WARNING"), check("ping", "FAILURE"), check("ping", "FAILURE")]
        self.assertEqual([p.kind for p in self.tally({"ping": checks}).problems], ["failure"])

    def test_an_excluded_scenario_does_not_count(self):
        records = {"tasks-required-task-error": [check("x", "FAILURE")], "ping": [check("ping", "SUCCESS")]}
        with unittest.mock.patch.object(run, "EXCLUDED", run.RELAY):
            tally = self.tally(records, scored=("ping", "tasks-required-task-error"))
        self.assertEqual((tally.scored, tally.problems), (1, []))

    def test_what_the_suite_does_not_score_is_required_all_the_same(self):
        records = {"ping": [check("ping", "SUCCESS")], "late": [check("late", "FAILURE")]}
        tally = self.tally(records, others=("late",))
        self.assertEqual((tally.scored_passed, tally.others_passed, tally.others), (1, 0, 1))
        self.assertEqual(len(tally.problems), 1)


class Known(unittest.TestCase):
    problem = run.Problem("all", "ping", "ping", "failure", "")

    def test_a_known_problem_is_no_news(self):
        self.assertEqual(run.compare([self.problem], {"all ping ping"}), ([], []))

    def test_an_unknown_problem_is(self):
        self.assertEqual(run.compare([self.problem], set()), ([self.problem], []))

    def test_a_known_problem_that_is_gone_must_be_struck_out(self):
        self.assertEqual(run.compare([], {"all ping ping"}), ([], ["all ping ping"]))

    def test_the_file_takes_comments_and_refuses_half_a_name(self):
        self.assertEqual(run.read_known("# a\n\nall  ping ping # why\n"), {"all ping ping"})
        with self.assertRaisesRegex(run.Broken, "known-failures.txt:2"):
            run.read_known("\nall ping\n")


class Listing(unittest.TestCase):
    TEXT = """Required for 2025-11-25 (3 scenarios, frozen):

Server scenarios (test against a server):
  - ping
  - tools-list

Client scenarios (test against a client):
  - initialize

Run and reported, but never scored:
  extension (1):
    - auth/dpop [client]
  pending (1):
    - server-sse-polling [server]
"""

    def test_the_sections_are_told_apart(self):
        self.assertEqual(run.parse_list(self.TEXT, "server"), (["ping", "tools-list"], ["server-sse-polling"]))

    def test_the_plain_list_names_revisions_behind_each_scenario(self):
        text = "Server scenarios (test against a server):\n  - ping [2025-06-18,2025-11-25]\n"
        self.assertEqual(run.parse_list(text, "server"), (["ping"], []))

    def test_an_empty_list_is_an_error_and_not_a_full_score(self):
        with self.assertRaises(run.Broken):
            run.parse_list("Client scenarios (test against a client):\n  - initialize\n", "server")


if __name__ == "__main__":
    unittest.main()
