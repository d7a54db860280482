#!/usr/bin/env python3
"""Trains small tokenizers of every kind that Shunt reads, and writes what they make of hard strings.

    tools/references/train_tokenizers.py tests/data/tokenizers

Needs Hugging Face's tokenizers as Node package (npm install tokenizers; NODE_PATH names its node_modules) and
SentencePiece as Python package (Debian's python3-sentencepiece). Byte-level families cut text by the pattern that was
published with them; the SentencePiece models are trained by SentencePiece and rebuilt with Hugging Face's library, and
where the two differ, that is printed. tests/models/text/reference_tokenizers_test.cpp reads the results.
"""
import base64
import io
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter

import sentencepiece

# Reads a tokenizer and texts, writes words, ids and what the ids decode to.
NODE = """
const { Tokenizer } = require("tokenizers");
const { tokenizer, texts } = JSON.parse(require("fs").readFileSync(0, "utf8"));
const made = Tokenizer.fromString(JSON.stringify(tokenizer));
const cut = made.getPreTokenizer();
(async () => {
  const words = cut ? texts.map((text) => cut.preTokenizeString(text).map(([word]) => word)) : [];
  const ids = [];
  const decoded = [];
  for (const text of texts) ids.push((await made.encode(text, null, { addSpecialTokens: false })).getIds());
  if (tokenizer.decoder) for (const each of ids) decoded.push(await made.decode(each, false));
  process.stdout.write(JSON.stringify({ words, ids, decoded }));
})();
"""

TEXTS = """
All human beings are born free and equal in dignity and rights. They're endowed with reason and conscience.
Tous les êtres humains naissent libres et égaux en dignité et en droits. Où est l'été? Ça va.
Alle Menschen sind frei und gleich an Würde und Rechten geboren. Straße, Fuß, Größe, ÄÖÜ.
Todos los seres humanos nacen libres e iguales en dignidad y derechos. ¿Qué? ¡Mañana!
Все люди рождаются свободными и равными в своём достоинстве и правах. Ещё ЁЖИК.
Всі люди народжуються вільними і рівними у своїй гідності та правах. Її їжак.
Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. ΣΊΣΥΦΟΣ
Բոլոր մարդիկ ծնվում են ազատ ու հավասար իրենց արժանապատվությամբ ու իրավունքներով։
ყველა ადამიანი იბადება თავისუფალი და თანასწორი თავისი ღირსებითა და უფლებებით.
כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. שָׁלוֹם
يولد جميع الناس أحرارا متساوين في الكرامة والحقوق. مَرْحَبًا ٠١٢٣٤٥
تمام انسان آزاد اور حقوق و عزت کے اعتبار سے برابر پیدا ہوئے ہیں۔ ۱۲۳
सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है। १२३
সমস্ত মানুষ স্বাধীনভাবে সমান মর্যাদা এবং অধিকার নিয়ে জন্মগ্রহণ করে।
மனிதப் பிறிவியினர் சகலரும் சுதந்திரமாகவே பிறக்கின்றனர்.
మనుషులందరూ స్వేచ్ఛతో జన్మించినారు.
มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ๑๒๓
ມະນຸດທຸກຄົນເກີດມາມີກຽດສັກສີ
လူတိုင်းသည် တူညီ လွတ်လပ်သော ဂုဏ်သိက္ခာဖြင့်
មនុស្សទាំងអស់កើតមកមានសេរីភាព
人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心。
すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。カタカナ
모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.
ሁሉም ሰው ነጻ ሆኖ የተፈጠረ ነው።
Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền lợi.
Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. İstanbul ıÜĞ
for (int i = 0; i < 10; ++i) { sum += values[i]; }  // add them up: 3.14159 * 2
def main(argv): return {"key": [1, 2, 3], 'other': None} if argv else 42
https://example.com/path?query=value&other=1#part and name.surname@mail.example.org
I'm sure you've seen that we'll do what they'd said: it's 12345 or 1,234,567.89, isn't it? DON'T! I'LL
""".strip().split("\n")

STRINGS = [
    "", "a", " ", "  ", "   ", "\n", "\t", " \n", "\n ", "\r\n", "\r", "\n\n\n", " \n \n  x", "\t\tx", "x\t \ty", "x  ", "x \n",
    "  leading and trailing  ", "a  b   c    d     e", "line one\r\nline two\r\n\r\nline three\n\n  indented\n\ttabbed\n",
    "\u00a0\u2003\u3000x\u2028y\u2029z\u0085w\u202fv\u205fu\u1680t", "zero\u200bwidth\u200c\u200djoin\ufeffmark\u00adsoft\u2060",
    "'s't're've'm'll'd", "'S'T'RE'VE'M'LL'D", "I'm you're HE'LL they'Ve it'S we'D don't DON'T 'tis rock'n'roll", "\u2019s it\u2019s",
    "'\u017f '\u017fa it'\u017f a'lL'Re", "''s '''ll 's's", "x's\n's 's\n", "O'Neil's d'\u00e9t\u00e9 l'\u00c9t\u00e9'S", "THEY'RE's'VE",
    "1", "12", "123", "1234", "12345", "123456", "1234567", "12345678901234567890", "3.14159", "1,234,567.89", "1e-10", "0x1F", "a1b22c333d4444",
    " 1 12 123 1234", "\u0661\u0662\u0663\u0664\u0665 \u0967\u0968\u0969\u096a \u0e51\u0e52\u0e53 \uff11\uff12\uff13\uff14", "x\u00b2 \u00bd \u2167 \u2462 \u3289 \u4e00\u4e8c\u4e09\u5341", "\U0001d7ce\U0001d7cf 12\u066634",
    "!!! ??? ... ,,, ;;; ::: --- ___ ((( ))) [[ ]] {{ }}", "a.b,c;d:e!f?g", "<<<>>> $100 \u20ac50 \u00a320 100% #tag @you a+b=c ^ ~ `code` |x|", "...\n\n...\r\n///\n//", "---/\n/- ?!\r\n\r\n x", "$$$+++<<<===>>>^^^~~~|||```",
    "\u00a1\u00bf \u00ab\u00bb \u201c\u201d \u2018\u2019 \u2013\u2014 \u2026 \u2022 \u00b6\u00a7 \u00a9\u00ae\u2122 \u00b0 \u2190\u2191\u2192 \u2200\u2203\u2208 \u221e\u2260\u2264", "\u3001\u3002\u300c\u300d\uff01\uff1f\uff08\uff09", "+\u00ac\u00b1\u00d7\u00f7 \u02c6\u02dc \u00a8\u00b4\u00b8",
    "Hello, world!", "hello world HELLO WORLD Hello World hELLO wORLD", "camelCaseString PascalCaseString SCREAMING_SNAKE snake_case XMLHttpRequest iPhone", "ABCdefGHIjkl", "aB Ab AB ab ABc aBC", "McDonald's MCDONALD'S",
    "e\u0301 \u00e9 E\u0301cole \u00c9cole n\u0303 \u0301 \u0301a A\u0301B\u0301c\u0301d", "\u0301\u0302\u0303", "a\u0300\u0301\u0302\u0303\u0304b Z\u0351\u036b\u0343\u036a\u0302a\u0324\u0330lgo", " \u0301x \n\u0301y 1\u03012\u0301", "\u01c5\u01c8 \u01c5x A\u01c5 \u01c4\u01c5\u01c6 \u1f88\u1f80", "\u02b0\u02b1 a\u02b0B \u02b0A A\u02b0", "\ufb01ne \ufb06 \u1e9e\u00df\u0130\u0131 \u212a\u212b \u2126",
    "A\u4e2dB \u4e2dABC ABC\u4e2d a\u4e2db\u4e2dC", "\u4e2d\u6587\u5b57\u7b26\uff0c\u6ca1\u6709\u7a7a\u683c\u3002", "\u65e5\u672c\u8a9e\u3068English\u3068\u30ab\u30bf\u30ab\u30ca123", "\uff21\uff22\uff23\uff41\uff42\uff43", "\ud55c\uad6d\uc5b4 \ubb38\uc7a5\uc785\ub2c8\ub2e4. \u1112\u1161\u11ab\u1100\u1173\u11af", "\u3105\u3106 \u31a0 \u30fc\u309d \u3005",
    "\u0418\u0439 \u0438\u0306 \u0401\u0436\u0438\u043a \u0415\u0308\u0436\u0438\u043a", "\u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2 \u1f08\u03b8\u1fc6\u03bd\u03b1\u03b9", "\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd \u05e2\u05d5\u05dc\u05dd\u05be", "\u0645\u064e\u0631\u0652\u062d\u064e\u0628\u064b\u0627 \u0640\u0640 \u060c\u061b\u061f \u0644\u0627", "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e \u0915\u094d\u0937\u0924\u094d\u0930\u093f\u092f\u0964", "\u0986\u09ae\u09bf \u09ac\u09be\u0982\u09b2\u09be", "\u0ba4\u0bae\u0bbf\u0bb4\u0bcd \u0c24\u0c46\u0c32\u0c41\u0c17\u0c41 \u0c95\u0ca8\u0ccd\u0ca8\u0ca1 \u0d2e\u0d32\u0d2f\u0d3e\u0d33\u0d02", "\u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22\u0e44\u0e21\u0e48\u0e21\u0e35\u0e0a\u0e48\u0e2d\u0e07\u0e27\u0e48\u0e32\u0e07 \u0e01\u0e33", "\u0f56\u0f7c\u0f51\u0f0b\u0f66\u0f90\u0f51\u0f0d \u1019\u103c\u1014\u103a\u1019\u102c \u1781\u17d2\u1798\u17c2\u179a \u0ea5\u0eb2\u0ea7", "\u10e5\u10d0\u10e0\u10d7\u10e3\u10da\u10d8 \u1c90\u1c91 \u0540\u0561\u0575\u0565\u0580\u0565\u0576 \u0587", "\u12a0\u121b\u122d\u129b\u1362 \u13e3\u13b3\u13a9 \uab70 \u1403\u14c4\u1483 \u16a0\u16a2\u16a6 \u1810\u1820", "\u2c00\u2c30 \U00010400\U00010428 \U00010330 \U00012000 \U00013000 \U0001d400\U0001d41a", "\U00020000\U0002a6d6 \U0001b000 \ua4d0\ua500 \ua000",
    "\U0001f600 \U0001f600\U0001f603\U0001f604 text\U0001f600text", "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \U0001f9d1\U0001f3fd\u200d\U0001f4bb", "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7 \u2764\ufe0f \u263a 1\ufe0f\u20e3 #\ufe0f\u20e3", "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f!",
    "for (int i = 0; i < 10; ++i) {\n    sum += values[i];  // add\n\treturn x->y::z;\n}\n", "def f(x):\n    if x == 1:\n        return {'a': [1, 2.5], \"b\": None}\n\n\n    # end\n", "#include <stdio.h>\r\nint main(void) { printf(\"%d\\n\", 42); }\r\n", "SELECT * FROM t WHERE a='b' AND c<>\"d\";", "https://example.com/a/b_c-d.html?x=1&y=%20#frag user@mail.example.org", "C:\\Users\\me\\file.txt ~/.bashrc /usr/local/bin/", "<html>\n<p class=\"x\">&amp;</p>\n</html>", "$E = mc^2$, \\alpha_{i,j}",
    "\x7f\x1b[0m\x01\x02", "\ue000\uf8ff\U000f0000", "\u0378\U000e0fff\ufffe\uffff", "\ufffd", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "antidisestablishmentarianism Donaudampfschifffahrtsgesellschaft", "     x     y", "x\n\n     y\n\n", " a b", "\n a", "\u4e2d \u4e2d\n \u4e2d",
]
# Split out before all else; SentencePiece models would put a space behind them.
SPECIAL_STRINGS = ["\x00x\x00", "<|start|>hello<|end|>", "<|start|> hello <tool>  world<|end|>\n", "<tool><tool> <toolbox> <tool", "x<|end|", "it<tool>'s 12<tool>34"]

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LOWER, UPPER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
BEFORE = r"[^\r\n\p{L}\p{N}]?"
SPACES = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = SHORT + "|" + BEFORE + r"\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + SPACES
QWEN2 = LLAMA3.replace("{1,3}", "")
SLASHES = r" ?[^\s\p{L}\p{N}]+[\r\n/]*" + SPACES
TEKKEN = f"{BEFORE}{UPPER}*{LOWER}+|{BEFORE}{UPPER}+{LOWER}*|" + r"\p{N}|" + SLASHES
GPT4O = f"{BEFORE}{UPPER}*{LOWER}+{SHORT}?|{BEFORE}{UPPER}+{LOWER}*{SHORT}?|" + r"\p{N}{1,3}|" + SLASHES


def hugging_face(tokenizer, texts):
    made = subprocess.run(["node", "-e", NODE], input=json.dumps({"tokenizer": tokenizer, "texts": texts}).encode(),
                          stdout=subprocess.PIPE, check=True)
    return json.loads(made.stdout)


def tokenizer_of(model, normalizers=(), pre_tokenizers=(), decoder=None, added=()):
    return {
        "version": "1.0", "truncation": None, "padding": None, "post_processor": None, "decoder": decoder, "model": model,
        "added_tokens": [
            {"id": token, "content": text, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
             "special": special} for token, text, special in added
        ],
        "normalizer": {"type": "Sequence", "normalizers": list(normalizers)} if normalizers else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": list(pre_tokenizers)} if pre_tokenizers else None,
    }


def bpe(vocabulary, merges, **options):
    model = {
        "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
        "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": vocabulary, "merges": merges,
    }
    return model | options


def byte_level_step(use_regex):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}


def split(*patterns):
    steps = [{"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False} for pattern in patterns]
    return steps + [byte_level_step(False)]


BYTE_LEVEL = {  # name: (steps, whether a word that is a token needs no merges)
    "default": (split(r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"), False),
    "gpt-2": ([byte_level_step(True)], False),
    "llama-bpe": (split(LLAMA3), True),
    "qwen2": (split(QWEN2), False),
    "tekken": (split(TEKKEN), True),
    "smollm": ([{"type": "Digits", "individual_digits": True}, byte_level_step(True)], False),
    "deepseek-r1-qwen": (split(QWEN2), False),
    "gpt-4o": (split(GPT4O), False),
}
LETTERS = [chr(code) for code in [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x144)]]  # one for each byte
MERGES = 700
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6


def train(words):
    """The merges that make the most of pairs disappear, one after the other."""
    words = Counter(words)
    pieces = {word: list(word) for word in words}
    merges = []
    while len(merges) < MERGES:
        pairs = Counter()
        for word, count in words.items():
            for pair in zip(pieces[word], pieces[word][1:]):
                pairs[pair] += count
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        for word, parts in pieces.items():
            at = 0
            while at + 1 < len(parts):
                if (parts[at], parts[at + 1]) == best:
                    parts[at : at + 2] = ["".join(best)]
                at += 1
    return merges


def byte_level(name):
    steps, whole_words = BYTE_LEVEL[name]
    special = ["<|start|>", "<|end|>"]
    words = hugging_face(tokenizer_of(bpe({letter: at for at, letter in enumerate(LETTERS)}, []), (), steps), TEXTS + STRINGS)
    merges = train([word for text in words["words"] for word in text])
    tokens = list(dict.fromkeys(special + LETTERS + ["".join(merge) for merge in merges])) + ["<tool>"]
    if whole_words:  # some tokens can then be had as words only
        merges = [merge for at, merge in enumerate(merges) if at % 7 != 3]
    added = [(0, special[0], True), (1, special[1], True), (len(tokens) - 1, "<tool>", False)]
    vocabulary = {token: at for at, token in enumerate(tokens[:-1])}
    texts = STRINGS + SPECIAL_STRINGS
    model = bpe(vocabulary, merges, ignore_merges=whole_words)
    made = hugging_face(tokenizer_of(model, (), steps, byte_level_step(False), added), texts)
    for text, decoded in zip(texts, made["decoded"]):
        assert decoded == text, (name, text, decoded)
    types = [CONTROL] * 2 + [NORMAL] * (len(tokens) - 3) + [USER_DEFINED]
    return {"model": "gpt2", "pre": name, "tokens": tokens, "types": types, "merges": [" ".join(merge) for merge in merges],
            "ids": made["ids"]}


# What the map of the model "unigram" does: code points to code points, in hexadecimal.
RULES = ["FF21\t41", "FF22\t42", "FF11\t31", "FB01\t66 69", "65 301\tE9", "2026\t2E 2E 2E", "A0\t20", "9\t20", "A\t20", "D\t20", "D A\t20", "3000\t20", "200B\t"]


def sentencepiece_model(kind, **options):
    model = io.BytesIO()
    lines = [text.replace("\t", " ") for text in TEXTS for _ in range(2)]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, model_type=kind, hard_vocab_limit=False,
        character_coverage=0.98, minloglevel=2, max_sentence_length=100000, num_threads=1, **options,
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue()), model.getvalue()


def charsmap_of(model):
    """precompiled_charsmap: field 2 of normalizer_spec, which is field 3 of the model."""
    def fields(data):
        at = 0
        def number():
            nonlocal at
            value = shift = 0
            while True:
                byte = data[at]
                at += 1
                value |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    return value
        while at < len(data):
            tag = number()
            if tag & 7 == 0:
                number()
            elif tag & 7 == 5:
                at += 4
            else:
                size = number()
                yield tag >> 3, data[at : at + size]
                at += size
    spec = [value for tag, value in fields(model) if tag == 3][0]
    return b"".join(value for tag, value in fields(spec) if tag == 2)


def pieces_of(model):
    count = model.get_piece_size()
    kinds = [(model.is_unknown, UNKNOWN), (model.is_control, CONTROL), (model.is_byte, BYTE)]
    types = [next((kind for test, kind in kinds if test(token)), NORMAL) for token in range(count)]
    return [model.id_to_piece(token) for token in range(count)], types, [model.get_score(t) for t in range(count)]


def agree(name, model, rebuilt):
    ids = hugging_face(rebuilt, STRINGS)["ids"]
    for text, theirs in zip(STRINGS, ids):
        if (original := model.encode(text)) != theirs:
            print(name, "differs:", ascii(text), "SentencePiece", original, "Hugging Face", theirs)
    return ids


REPLACE_SPACE = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}


def scored_merges():
    model, _ = sentencepiece_model("bpe", vocab_size=1200, byte_fallback=True, normalization_rule_name="identity",
                                   remove_extra_whitespaces=False, split_digits=True, allow_whitespace_only_pieces=True)
    tokens, types, scores = pieces_of(model)
    vocabulary = {piece: token for token, piece in enumerate(tokens)}
    merges = []
    for token, piece in enumerate(tokens):
        if types[token] == NORMAL:
            pairs = [(piece[:at], piece[at:]) for at in range(1, len(piece))]
            pairs = [pair for pair in pairs if pair[0] in vocabulary and pair[1] in vocabulary]
            merges += [(-scores[token], pair) for pair in sorted(pairs, key=lambda p: (vocabulary[p[0]], vocabulary[p[1]]))]
    merges = [pair for _, pair in sorted(merges, key=lambda merge: merge[0])]
    model_json = bpe(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    rebuilt = tokenizer_of(model_json, [{"type": "Prepend", "prepend": "\u2581"}, REPLACE_SPACE])
    return {"model": "llama", "tokens": tokens, "types": types, "scores": scores, "ids": agree("llama", model, rebuilt)}


def unigram(name, **options):
    model, proto = sentencepiece_model("unigram", vocab_size=1000, **options)
    tokens, types, scores = pieces_of(model)
    charsmap = charsmap_of(proto)
    tight = options["remove_extra_whitespaces"]
    steps = [{"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap).decode()}] if charsmap else []
    if tight:
        steps += [{"type": "Replace", "pattern": {"Regex": "^ +| +$"}, "content": ""},
                  {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]
    steps += [{"type": "Prepend", "prepend": "\u2581"}, REPLACE_SPACE]
    rebuilt = tokenizer_of({"type": "Unigram", "unk_id": 0, "vocab": list(zip(tokens, scores)),
                            "byte_fallback": bool(options.get("byte_fallback"))}, steps)
    return {
        "model": "t5", "tokens": tokens, "types": types, "scores": scores, "charsmap": charsmap.hex(),
        "remove_extra_whitespaces": tight, "ids": agree(name, model, rebuilt),
    }


def main(folder):
    rules = tempfile.NamedTemporaryFile("w", suffix=".tsv", delete=False)
    rules.write("".join(rule + "\n" for rule in RULES))
    rules.close()
    results = {name: byte_level(name) for name in BYTE_LEVEL}
    results["llama"] = scored_merges()
    results["unigram"] = unigram("unigram", normalization_rule_tsv=rules.name, remove_extra_whitespaces=True)
    results["unigram-bytes"] = unigram("unigram-bytes", normalization_rule_name="identity", byte_fallback=True,
                                       remove_extra_whitespaces=False)
    if len(sys.argv) > 2:  # the map of most published models; too large to keep in the repository
        results["unigram-nfkc"] = unigram("unigram-nfkc", normalization_rule_name="nmt_nfkc", remove_extra_whitespaces=True)
    results["strings"] = {"strings": STRINGS, "special": SPECIAL_STRINGS}
    for name, result in results.items():
        with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as file:
            lines = [json.dumps(key) + ": " + json.dumps(value, ensure_ascii=True, separators=(",", ":")) for key, value in result.items()]
            file.write("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1])
