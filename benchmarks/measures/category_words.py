"""How language models and people say what an idea is about, beyond the words of `operations`.

Each line weighs 3 where it names what is to be done, 2 where it nearly does, 1 where it may as well
be in passing. Gaps are bounded, so that matching takes time in proportion to the text.
"""

from __future__ import annotations

from mle_ideator.operations import Category

_MODEL = (
    r"(?:random (?:survival )?forests?|survival forests?|extra[- ]?trees|\w*gradient[- ]?boost\w*"
    r"|boosted trees|lightgbm|lgbm\w*|xgb\w*|catboost\w*|hist\w*boosting\w*|random ?forest\w*|svm"
    r"|svc|svr|support vector\w*|logistic regression\w*|ridge\w*|lasso|elastic ?net"
    r"|linear (?:model|regression)|k-?nn|k?-?nearest[- ]neighbou?rs?|neural net\w*|mlps?|mlp\w*"
    r"|negative binomial|quantile forests?|[1-3]d[- ]?cnn|cnns?|convolutional \w+|resnet\w*"
    r"|efficientnet\w*|convnext\w*|vision transformers?|vit|transformers?|\w*bert\w*|lstm|gru|rnn"
    r"|gaussian process\w*|naive bayes|matrix[- ]factori[sz]ation|factori[sz]ation machines?|cox"
    r"|kaplan\w*|prophet|s?arima\w*|ets|exponential smoothing|rocket|minirocket|tabpfn|tabnet"
    r"|rankers?|lambdarank|decision trees?|gamma-gamma|poisson regression|glm|gams?|classifier"
    r"|regressor|boosting|tweedie model)"
)
_PARAMETER = (
    r"(?:num_leaves|leaves|(?:max[_ ]?)?depth|min_child\w*|min_samples\w*|min_data\w*"
    r"|samples in (?:a|each|every) leaf|n_estimators|(?:more|fewer)? ?trees|iterations"
    r"|(?:boosting )?rounds|learning[-_ ]rate|reg_\w+|lambda\w*|alpha|l[12]\b|subsample"
    r"|colsample\w*|feature_fraction|bagging_fraction|max_features|max_bins?|dropout"
    r"|weight[-_ ]decay|hidden (?:units|layers|size)|layers|batch size|rank of"
    r"|number of (?:factors|neighbou?rs)|(?:larger|smaller) k\b|penalt\w+|regulari[sz]\w+|capacity"
    r"|gamma\b|\bC\b)"
)
_CHANGE = (
    r"(?:increas\w+|decreas\w+|rais\w+|lower\w*|reduc\w+|set|doubl\w+|halv\w+|limit\w*|larger"
    r"|smaller|more|fewer|deeper|shallower|chang\w+|vary|adjust\w*|add|strengthen|weaken|shrink)"
)
_OUTPUT = r"(?:predict(?:ions?|ed\b)|forecasts?|probabilit\w+|outputs?|scores?\b|logits?)"
_MAKE = (
    r"(?:add|creat|comput|build|deriv|extract|construct|engineer|append|includ|generat|introduc"
    r"|us(?:e|es|ing)(?!\w))"
)

WORDS: dict[Category, dict[int, tuple[str, ...]]] = {
    "data preparation": {
        3: (
            r"(?:drop|remov|delet|filter|discard|exclud)\w*[^.,;:]{0,40}\b(?:rows|duplicat\w+"
            r"|samples|records|observations|examples|listings|outliers?)",
            r"de-?duplicat\w*|duplicated? rows",
            r"(?:left[- ]|inner[- ])?join(?:s|ed|ing)?\b|merg\w+[^.;]{0,60}\b(?:on|into|tables?"
            r"|csv)\b",
            r"sentinel|placeholder|(?:with|to|as|by) nan\b|as missing\b",
            r"log1p|expm1|log[- ]?transform\w*|box-?cox|yeo-?johnson|quantile[- ]transform\w*"
            r"|(?:log|square root|sqrt|transform\w*)(?: of)? (?:the )?target",
            r"winsori[sz]\w*|outliers?\b",
            r"clean\w*[^.,;]{0,20}\b(?:text|data|labels?|values|strings|columns?)|lower-?cas\w+"
            r"|strip\w*[^.,;]{0,20}\b(?:html|tags|urls?|punctuation|whitespace|accents)",
            r"\w*imput\w+|fill\w*[^.,;]{0,40}\b(?:missing|nans?|gaps?)"
            r"|missing (?:\w+ ){0,2}indicator|missing[^.,;]{0,30}(?:indicator|flag)|forward-?fill",
            r"(?:rare|infrequent) (?:\w+ )?(?:levels?|categor\w+|values|classes)|(?:group|merg"
            r"|collaps|lump|map)\w*[^.;]{0,60}\b(?:under|into|to) (?:one|a common|a single"
            r"|'?other)",
            r"(?:labels?|targets?)[^.;]{0,30}\b(?:nois\w+|mislabel\w+|wrong)|noisy labels?"
            r"|mislabel\w+",
        ),
        2: (
            r"(?:fix|repair|correct)\w*[^.,;]{0,40}\b(?:pars\w+|bug|types?|merge|reading|encoding)",
            r"(?:pars|convert)\w*[^.,;]{0,20}\bdates?|to_datetime",
            r"(?:convert|cast|coerc|strip)\w*[^.;]{0,60}\b(?:floats?|numbers?|numeric|dates?"
            r"|strings?|units?|symbols?)|filter\w* (?:\w+ )?out|recording errors?"
            r"|impossible values?",
            r"standardi[sz]\w+|standardscaler|robustscaler|min-?max",
            r"(?:scal|normali[sz]|cent(?:re|er))\w*[^.,;]{0,25}\b(?:features?|inputs?|columns?"
            r"|pixels?|images?|numeric)",
            r"as strings?\b|dtype|unicode|whitespace|to_numeric|read as (?:object|text|numbers?)",
            r"(?:attach|append|look up|bring in)\w*[^.;]{0,50}\b(?:to|for) (?:every|each"
            r"|all) rows?|\w+\.csv\b[^.;]{0,60}(?:attach|through|via|by|using) \w+",
            r"(?:restrict|limit|cut|trim|subset)\w*[^.;]{0,30}\b(?:training (?:data|set|rows)"
            r"|history)",
            r"(?:log|logarithm|square root|sqrt) of (?:the )?\w+[^.;]{0,10}[:=] ?y\b|y = np\.\w+",
            r"(?:unseen|unknown|never occur)[^.;]{0,40}\b(?:mapp|merg|level|categor)\w*",
        ),
        1: (
            r"missing|nans?\b|blanks?\b|nulls?\b",
            r"rows\b[^.;]{0,30}\b(?:lost|dropped|removed|kept)|training (?:data|rows|set)\b",
            r"leak(?:s|ing|age)?\b[^.;]{0,30}\b(?:columns?|rows?)|encoding of the file|mojibake",
        ),
    },
    "feature engineering": {
        3: (
            r"(?:target|mean|count|frequency|likelihood|one-?hot|ordinal|label|leave-one-out"
            r"|woe)[- ]?encod\w*",
            rf"\b{_MAKE}\w*\b[^.;]{{0,70}}\b(?:features?|columns?|encodings?|flags?|interactions?"
            r"|ratios?|lag\w*|rolling|differences?|aggregat\w+|n-?grams?|distances?(?! weight)"
            r"|embeddings?|descriptors|statistics|components|cyclical)\b",
            r"(?:extract|deriv|comput|count|pars)\w*[^.;]{0,50}\b(?:hours?|weekday|month|number of"
            r"|length|words|share of|day of|out of the|from the (?:title|name|text))",
            r"feature (?:selection|engineering|crosses)|permutation importance|mutual information",
            r"(?:remov|drop|keep|select|prun)\w*[^.,;]{0,20}\b(?:features|columns)\b",
            r"\b[a-z]\w+ ?= ?[a-z]\w+ ?[/*+-] ?[a-z]\w+",
        ),
        2: (
            r"lag(?:s|ged)?\b|rolling|moving average|ratios?\b|interactions?\b|polynomial",
            r"tf-?idf|n-?grams?\b|embed\w*|\bhog\b|pca\b|svd\b|sentence transformer",
            r"weekday|weekend|holidays?|cyclic\w*|sin/cos|haversine|day of (?:the )?(?:week|year)",
            r"aggregat\w+|per (?:customer|user|store|group|item)\b|user-level|item-level",
        ),
        1: (
            r"features?\b|predictors?\b|covariates?\b",
            r"columns?\b|variables?\b",
            r"(?:as|of) (?:\w+ ){0,3}inputs?\b|inputs? (?:of|to|for)",
            r"time since|number of|days since|how (?:many|often|long)|share of"
            r"|average (?:\w+ ){0,2}(?:per|of the|value)",
            r"one-?hot|indicators?\b|flags?\b|dumm(?:y|ies)\b|\bbin(?:s|ned|ning)?\b",
            r"slope|differences?\b|sign changes|spectral|fourier|wavelet\w*|energy\b",
            r"clusters? of|k-?means|centroids?|distances? (?:to|from|between)|nearest \w+",
            r"(?:encod|represent|express|summari[sz])\w*\b|suffix\w*|prefix\w*"
            r"|its out-of-fold mean",
            r"previous (?:day|week|month|year|hour|order|purchase|value)|recency|frequency and"
            r"|monetary|trend over|shap\b|correlat\w+ (?:above|over)|redundant|deck letter"
            r"|pooled over|gradients\b",
            r"domain (?:knowledge|features?)|enrich\w*|engineer\w*",
        ),
    },
    "model choice": {
        3: (
            rf"(?:replac|swap|switch|mov|chang)\w*\b[^.;]{{0,60}}?\b(?:with|by|to"
            rf"|for)\b[^.;,]{{0,50}}?"
            rf"\b{_MODEL}\b",
            r"(?:us|try|train|fit|build|adopt|implement|introduc|giv|test|start with|go with)(?:e"
            r"|ing)?\b"
            rf"(?: (?!of\b|average\b|predictions\b)[\w-]+){{0,5}}? {_MODEL}\b",
            r"fine[-_]?tun\w+|pre-?trained",
            r"hurdle|two-?(?:stage|part|step) (?:\w+ )?model|mixture of experts|multi-?task",
            r"(?:treat|frame|cast|model)\w* (?:this|it|the \w+) as (?:an? )?(?:\w+ )?(?:problem"
            r"|task|ranking|classification|regression|survival|sequence)",
            r"(?:own|separate|one) (?:\w+ )?models?\b[^.;]{0,20}(?:per|for each|for every)|(?:per"
            r"|for each|for every|each)[^.;]{0,40}\bits own (?:\w+ )?(?:model|regress\w+)",
        ),
        2: (
            r"(?:recurrent|convolutional|graph|deep|small|feed-?forward) (?:\w+ )?(?:net\w*"
            r"|architecture)",
        ),
        1: (rf"\b{_MODEL}\b", r"pytorch|keras|architecture|conv blocks?|pooling|per-\w+ models?"),
    },
    "training": {
        3: (
            r"\bobjective\b|\bloss(?: function)?\b(?! of\b)(?![^.;]{0,20} above)",
            r"(?:group|stratified)\w*[- ]?k?-?fold|(?:validat|split)\w*[^.;]{0,30}\b(?:by|with|on"
            r"|to)\b[^.;]{0,30}(?:time|groups?|whole|latest|last|split|person|branch\w*|date)"
            r"|time-?(?:based|ordered|series)? ?split|adversarial validation"
            r"|nested cross-?validation",
            r"class[-_ ]weight\w*|sample[-_ ]weight\w*|weigh\w*[^.;]{0,25}\b(?:rows|samples"
            r"|classes|examples|positives?)|focal",
            r"(?:over|under|down|up|re)-?sampl\w+|smote",
            r"augment\w*|mix-?up|cut-?mix|(?:shifted|rotated|flipped)[^.;]{0,30}\b(?:copies"
            r"|images?)|random rotations?|enlarge the training",
            r"(?:learning[- ]rate|cosine)[- ]schedul\w+|one-?cycle|warm-?up|label smoothing",
            r"pseudo-?label\w*|self-?training|semi-?supervised|distil(?:l|lation|led)\b",
            r"pre-?train (?:an?|the|on|with)\b|autoencoder|contrastive",
            r"refit\w*[^.;]{0,40}\b(?:all|whole|full|train(?:ing)? (?:plus|and)|every)\b",
        ),
        2: (
            r"scale_pos_weight|is_unbalance|(?:give|assign)\w*[^.;]{0,40}\bweights?\b[^.;]{0,30}",
            r"validation (?:scheme|split|set|strategy)|groups ?=|(?:rows"
            r"|samples) of one \w+ (?:appear|lie)|leak\w* across",
            r"noise[^.;]{0,30}\btraining|more examples|synthetic (?:rows|examples|samples)"
            r"|perturb\w*|time shifts?|flips?\b|crops?\b|jitter",
            r"train\w* in (?:two|three|several) (?:phases|stages)|warm-?start\w*|curriculum|(?:few"
            r"|more) (?:more )?(?:rounds|epochs)|freez\w+|unfreez\w+",
            r"(?:label|annotat)\w*[^.;]{0,40}\b(?:with|by) the (?:current )?model|train again on"
            r"|loss to\b|random folds|memori[sz]e\w*|folds let|carry over to the test",
            r"tweedie|huber|quantile (?:loss|objective)|squared error|absolute error"
            r"|custom objective",
        ),
        1: (
            r"early stopping|epochs?\b|cross-?validat\w+|folds?\b|validation\b",
            r"weakly labelled|unlabell?ed|positives?\b|minority|imbalanc\w+",
            r"optimi[sz]er|gradient clipping|batch(?:es)?\b|(?:tenth of the )?learning rate",
        ),
    },
    "hyper-parameters": {
        3: (
            r"optuna|hyper-?param\w*|grid[- ]?search\w*|random(?:i[sz]ed)? search\w*"
            r"|bayesian optimi\w+|hyperband|\btun(?:e"
            r"|ing)\b(?! (?:the )?(?:decision )?(?:threshold|cut))",
            rf"\bsearch\w*\b[^.;]{{0,50}}\b{_PARAMETER}",
            rf"\b{_CHANGE}\b[^.;]{{0,40}}?\b{_PARAMETER}",
            rf"\b{_PARAMETER} ?(?:=|to|from|of|at) ?(?:\[|\{{)?\d",
        ),
        2: (
            rf"\b{_PARAMETER}\s*=\s*\d",
            r"\bk ?= ?\d+",
            r"over-?fit\w*|under-?fit\w*|too (?:flexible|rigid|deep|shallow|simple|complex)",
            r"\b[a-zA-Z]\w*_\w+ (?:in|over|between) ?[{\[(]?\s*\d|\b[a-zA-Z]\w*_\w+[^.;]{0,12}(?:→"
            r"|->)",
            r"\bsweep\w*|(?:fewer|more|larger number of) (?:neighbou?rs|trees|leaves|layers|units"
            r"|estimators|stumps)|depth \d|(?:too|more|less) (?:shallow|deep)\w*|rows (?:a|per"
            r"|in each) leaf",
            r"halving search|search space|(?:at|from) (?:its|their|the) defaults?"
            r"|default (?:settings|param)",
            r"(?:doubl|halv|quadrupl)\w*[^.;]{0,30}\b(?:number|size|iterations|rounds|width"
            r"|steps?)",
        ),
        1: (
            r"settings\b|parameters?\b|configuration",
            r"step size|iterations|changepoints|smoothing|depth|complexity|capacity|flexible",
        ),
    },
    "ensembling": {
        3: (
            r"\bblend\w*|\bstack(?:s|ing|ed)?\b|\bensembl\w*|\bbag(?:s|ging|ged)?\b|\bvot(?:e"
            r"|ing)\w*",
            r"averag\w*[^.;]{0,60}\b(?:models?|predictions?|submissions?|seeds?|folds?"
            r"|probabilities|outputs?)",
            r"(?:different|several|multiple|\w+) (?:random )?seeds\b",
            r"meta-?(?:model|learner)|second-?(?:level|stage|layer) (?:model|learner)"
            r"|super ?learner",
            r"combin\w*[^.;]{0,60}\b(?:models?|predictions?|trees|network|forest|boost\w*"
            r"|regression|submissions?|solutions?|them)\b",
            r"(?:geometric|harmonic|weighted|arithmetic) (?:mean"
            r"|average) of (?:\w+ ){0,3}(?:probabilities|predictions|models?|outputs?)"
            r"|rank-?averag\w*|snapshots?\b",
            r"caruana|hill[- ]?climbing|model soup|greedy (?:forward )?selection",
            r"0?\.\d+ ?[*×·] ?\w+[^.;]{0,12}\+ ?0?\.\d+ ?[*×·]",
            r"(?:mix|merg|averag|combin|pool|fus)\w*[^.;]{0,20}\b(?:solutions?|submissions?) #?\d",
            r"(?:mean|median) of (?:the )?(?:\w+ ){0,3}(?:forecasts?|predictions?|models?"
            r"|probabilities)",
            r"(?:out[- ]of[- ]fold|oof) predictions?[^.]{0,60}\b(?:weights?|inputs?|least squares"
            r"|final)",
            r"(?:predictions?|outputs?)[^.]{0,60}\b(?:as|made out of fold)[^.]{0,30}\binputs?\b",
        ),
        2: (
            r"(?:two|three|four|five|several) (?:\w+ )?(?:models|learners)\b|weakly correlated"
            r"|divers\w+",
            r"(?:mean|average|median) of their|averaging (?:the|their)|committee"
            r"|initiali[sz]ations?|(?:seeds?|repeats?) (?:and|x|×)|\d+ (?:seeds|folds"
            r"|test predictions)",
        ),
    },
    "post-processing": {
        3: (
            r"thresholds?\b|cut[- ]?(?:offs?|points?)\b|decision rule",
            r"calibrat\w*|isotonic|platt|temperature scaling",
            rf"(?:clip|bound|round|cap|floor|clamp|truncat)\w*[^.;]{{0,20}}\b{_OUTPUT}",
            r"post-?process\w*|after predict\w+|bias correction",
            rf"(?:multipl|scal|shift|smooth|adjust|normali[sz]|re-?scal|re-?normali[sz]|shrink"
            rf"|correct"
            rf"|divid)\w*[^.;,]{{0,40}}\b{_OUTPUT}",
            rf"\bset[^.;,]{{0,20}}\b{_OUTPUT}[^.;]{{0,20}}\b(?:to|below|above)\b|below zero"
            rf"|break ties"
            r"|re-?rank\w*",
            rf"(?:snap|reconcil|replac|overwrit|blank|zero|add|subtract"
            rf"|adjust)\w*[^.;]{{0,30}}\b(?:the "
            rf"|final |all |predicted )*{_OUTPUT}",
            r"(?:multipl|scal|divid|reweigh)\w*[^.;]{0,15}\b(?:its|their|each"
            r"|the) (?:\w+ )?probabilit\w+",
        ),
        2: (
            r"sort again|bonus|offset|mean residual|\bset (?:the |it |them |all )?\w* ?to (?:0"
            r"|zero|one|1)\b|forc\w* (?:the |all )?predictions?",
            r"logits?\b|argmax|over-?confiden\w*|under-?confiden\w*|monotone",
            r"so that they (?:add|sum) up|closest of|nearest (?:integer|whole|valid)"
            r"|whole (?:stars|numbers)",
            r"boundar(?:y|ies)\b|prior (?:shift|correction)|class shares",
        ),
    },
}
"""Patterns by category and weight, matched without regard to case."""
