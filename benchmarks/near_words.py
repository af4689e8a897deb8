"""Make memory/retrieval/data/near_words.txt.gz: for each word the embedder knows, the words nearest to it.

Run it again when the packaged embedder or the stems change: `python benchmarks/near_words.py` (about 15 s).
"""

import gzip
import re
import sys
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from memory.embedding import _tokenizer_file, embed_packaged  # noqa: E402
from memory.retrieval.text import STOP_WORDS, stems  # noqa: E402

LEAST_COSINE = 0.5
MOST_NEAR = 15
TARGET = ROOT / "memory" / "retrieval" / "data" / "near_words.txt.gz"


def main() -> None:
    vocabulary = Tokenizer.from_file(str(_tokenizer_file())).get_vocab()
    words = sorted(word for word in vocabulary if re.fullmatch(r"[a-z]{3,}", word) and word not in STOP_WORDS)
    vectors = embed_packaged(words)
    lines = []
    for start in range(0, len(words), 1000):
        cosines = vectors[start : start + 1000] @ vectors.T
        for row, word in enumerate(words[start : start + 1000]):
            own = stems(word)[0]
            near: dict[str, float] = {}
            for column in np.argsort(-cosines[row])[:60]:
                stem = stems(words[column])[0]
                if cosines[row, column] < LEAST_COSINE or len(near) >= MOST_NEAR:
                    break
                if stem != own:
                    near.setdefault(stem, float(cosines[row, column]))
            if near:
                lines.append(
                    " ".join([word, *(f"{stem}:{round(cosine * 100)}" for stem, cosine in near.items())])
                )
    TARGET.write_bytes(gzip.compress("\n".join(lines).encode(), 9, mtime=0))
    print(f"{len(lines)} words, {TARGET.stat().st_size / 1024:.0f} KB")


if __name__ == "__main__":
    main()
