"""The rules for comments, on small trees that each break them in one place."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def words(count):
    return " ".join(["word"] * count)


class CheckProse(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def check(self, text, path="include/shunt/tensor.h"):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)
        done = subprocess.run([sys.executable, str(ROOT / "tools/check_prose.py"), str(self.root)],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1 if done.stdout else 0, done.stderr)
        return done.stdout

    def test_this_repository_keeps_the_rules(self):
        done = subprocess.run([sys.executable, str(ROOT / "tools/check_prose.py")], capture_output=True, text=True,
                              check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def test_a_sentence_of_25_words_passes(self):
        self.assertEqual(self.check(f"// {words(25)}.\n"), "")

    def test_a_longer_sentence_is_refused_with_file_and_line(self):
        self.assertEqual(self.check(f"int x;\n// {words(26)}.\n"),
                         "include/shunt/tensor.h:2: a sentence has 26 words; at most 25 are allowed\n")

    def test_lines_of_one_comment_are_joined(self):
        for comment in (f"// First. {words(13)}\n// {words(13)}.\n", f"/* First. {words(13)}\n * {words(13)}.\n */\n"):
            self.assertIn("tensor.h:1: a sentence has 26 words", self.check(comment))

    def test_a_trailing_comment_goes_on_in_the_next_line(self):
        self.assertIn("tensor.h:1: a sentence has 26 words",
                      self.check(f"int x;  // {words(13)}\n        // {words(13)}\n"))

    def test_neighbouring_comments_are_apart(self):
        for comments in (f"int x;  // {words(13)}\nint y;  // {words(13)}\n", f"// {words(13)}\n//\n// {words(13)}\n",
                         f"/* {words(13)} */\n/* {words(13)} */\n"):
            self.assertEqual(self.check(comments), "")

    def test_periods_and_semicolons_end_a_sentence_and_colons_do_not(self):
        self.assertEqual(self.check(f"// {words(13)}; {words(13)}. {words(13)}.\n"), "")
        self.assertIn("a sentence has 26 words", self.check(f"// {words(13)}: {words(13)}.\n"))

    def test_prefixes_addresses_code_and_lint_marks_do_not_count(self):
        self.assertEqual(self.check(f"// REQUIRES: {words(25)}. Errors: {words(25)}.\n// https://example.com\n"
                                    f"//     {words(26)}\n// NOLINTNEXTLINE(some-check): {words(26)}\n"), "")

    def test_a_literal_is_no_comment(self):
        self.assertEqual(self.check(f"""auto a = "https://{words(26)}"; auto b = '"'; // {words(13)}\n"""), "")

    def test_a_comment_that_begins_with_a_fragment_is_refused(self):
        for begin in ("Of", "As", "In place of", "Such", "That which", "Nothing of"):
            self.assertEqual(self.check(f"// {begin} a tensor.\n"),
                             f'include/shunt/tensor.h:1: a comment begins with "{begin}"\n')
        self.assertEqual(self.check("// Offsets count elements. As many as there are.\n"), "")

    def test_only_clean_folders_are_checked(self):
        self.assertEqual(self.check(f"// Of a tensor {words(26)}.\n", "src/ops/op.h"), "")


if __name__ == "__main__":
    unittest.main()
