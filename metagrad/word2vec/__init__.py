"""word2vec: from text to word vectors. Vocabulary → corpus → sampling → …, each built on those before it."""

from .corpus import Corpus, Sentences, as_sentences
from .evaluation import evaluate_analogies, evaluate_pairs
from .sampling import NoiseSampler, keep_probability, noise_distribution, subsample, windows
from .texts import TEXTS, Text, embedded_text, load_text
from .trainer import Word2Vec
from .vectors import WordVectors, load_pretrained, save_pretrained
from .vocabulary import Vocabulary

__all__ = [
    "TEXTS",
    "Corpus",
    "NoiseSampler",
    "Sentences",
    "Text",
    "Vocabulary",
    "Word2Vec",
    "WordVectors",
    "as_sentences",
    "embedded_text",
    "evaluate_analogies",
    "evaluate_pairs",
    "keep_probability",
    "load_pretrained",
    "load_text",
    "noise_distribution",
    "save_pretrained",
    "subsample",
    "windows",
]
