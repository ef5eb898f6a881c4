"""The literature behind the statistics and intervals: every entry once, by its key.

A source in the code is prose ("Cohen 1960, Educational and Psychological Measurement 20(1), p. 40"):
:func:`keys_of` finds the entries it names. ``.bib`` files, the references of a ``.tex`` file and the
citations of the methods paragraph are all made from the entries here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from voirdire.wording import Cite

if TYPE_CHECKING:
    from voirdire.document import Document

MCC_TITLE = "The Missing Compliance Class"
TWM_TITLE = "Three Ways Classical Test Theory Can Mislead"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One publication. ``kind`` is BibTeX's; fields that it does not have are empty.

    ``authors`` are given as ``Family, Given``. ``short`` stands in prose where there is no author.
    """

    key: str
    kind: str
    authors: tuple[str, ...]
    title: str
    year: str = ""
    journal: str = ""
    volume: str = ""
    number: str = ""
    pages: str = ""
    publisher: str = ""
    address: str = ""
    edition: str = ""
    institution: str = ""
    eprint: str = ""
    doi: str = ""
    note: str = ""
    short: str = ""

    @property
    def families(self) -> tuple[str, ...]:
        return tuple(author.partition(",")[0] for author in self.authors)

    @property
    def cited(self) -> str:
        """How prose cites it: ``Cohen 1960``, ``Korn and Graubard 1998``, ``Fagerland et al. 2013``."""
        names = self.families
        if not names:
            return f"“{self.short}”"
        who = names[0] if len(names) == 1 else f"{names[0]} and {names[1]}"
        return f"{who if len(names) < 3 else f'{names[0]} et al.'} {self.year}"

    @property
    def phrases(self) -> tuple[str, ...]:
        """The phrases by which a source in the code may name it."""
        names = self.families
        if not names:
            return (self.short,)
        whole = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
        return (self.cited, f"{whole} {self.year}", f"{whole} ({self.year}")

    def parts(self) -> list[tuple[str, bool]]:
        """The entry as a reference list prints it, in parts; the second says which are set off."""
        who = [_initials(author) for author in self.authors]
        if len(who) > 1:
            who = [*who[:-2], f"{who[-2]} and {who[-1]}"]
        lead = ", ".join(who)
        year = f" ({self.year})" if self.year else ""
        journal = bool(self.journal)
        parts = [(f"{lead}{year}. " if lead else "", False), (self.title, not journal)]
        edition = f", {self.edition} ed" if self.edition else ""
        parts.append((f"{edition}. " if lead else f"{year}. ", False))
        if journal:
            number = f"({self.number})" if self.number else ""
            parts += [(self.journal, True), (f" {self.volume}{number}", False)]
            parts.append((f", {self.pages}. " if self.pages else ". ", False))
        house = ", ".join(x for x in (self.institution, self.publisher, self.address) if x)
        rest = [house, f"arXiv {self.eprint}" if self.eprint else "", self.note]
        rest.append(f"doi:{self.doi}" if self.doi else "")
        parts.append((" ".join(f"{r}." for r in rest if r), False))
        return [p for p in parts if p[0]]


def _initials(author: str) -> str:
    """``Cohen, Jacob`` as ``J. Cohen``."""
    family, _, given = author.partition(", ")
    short = " ".join(
        "-".join(f"{part[0]}." for part in name.split("-") if part) for name in given.split()
    )
    return f"{short} {family}".strip()


def _article(
    key: str,
    authors: str,
    year: int,
    title: str,
    journal: str,
    volume: str,
    number: str,
    pages: str,
    doi: str = "",
) -> Entry:
    return Entry(
        key=key,
        kind="article",
        authors=tuple(authors.split("; ")),
        title=title,
        year=str(year),
        journal=journal,
        volume=volume,
        number=number,
        pages=pages.replace("-", "–"),
        doi=doi,
    )


def _book(
    key: str,
    authors: str,
    year: int,
    title: str,
    publisher: str,
    address: str = "",
    edition: str = "",
    doi: str = "",
) -> Entry:
    return Entry(
        key=key,
        kind="book",
        authors=tuple(authors.split("; ")),
        title=title,
        year=str(year),
        publisher=publisher,
        address=address,
        edition=edition,
        doi=doi,
    )


EPM = "Educational and Psychological Measurement"
JASA = "Journal of the American Statistical Association"
BULLETIN = "Psychological Bulletin"
AMSTAT = "The American Statistician"
SURVEY = "Survey Methodology"

# fmt: off
ENTRIES: tuple[Entry, ...] = (
    Entry(key="missingclass2026", kind="misc", authors=(), short=MCC_TITLE, year="2026",
          title="The Missing Compliance Class: LLM Graders That Collapse Jailbreak Success, and a Free Check",
          note="Preprint"),
    Entry(key="threeways", kind="misc", authors=(), short=TWM_TITLE,
          title="Three Ways Classical Test Theory Can Mislead About LLM Judges", note="Preprint"),
    _book("agresti2010", "Agresti, Alan", 2010, "Analysis of Ordinal Categorical Data", "Wiley", "Hoboken, NJ", "2nd"),
    _article("bell2002", "Bell, Robert M.; McCaffrey, Daniel F.", 2002, "Bias reduction in standard errors for linear regression with multi-stage samples", SURVEY, "28", "2", "169-181"),
    _article("bhapkar1966", "Bhapkar, V. P.", 1966, "A note on the equivalence of two test criteria for hypotheses in categorical data", JASA, "61", "313", "228-235"),
    _article("bonett2012", "Bonett, Douglas G.; Price, Robert M.", 2012, "Adjusted Wald confidence interval for a difference of binomial proportions based on paired data", "Journal of Educational and Behavioral Statistics", "37", "4", "479-488"),
    _article("bowker1948", "Bowker, Albert H.", 1948, "A test for symmetry in contingency tables", JASA, "43", "244", "572-574"),
    _article("brennan1977", "Brennan, Robert L.; Kane, Michael T.", 1977, "Signal/noise ratios for domain-referenced tests", "Psychometrika", "42", "4", "609-625"),
    _article("brennan1981", "Brennan, Robert L.; Prediger, Dale J.", 1981, "Coefficient kappa: Some uses, misuses, and alternatives", EPM, "41", "3", "687-699", "10.1177/001316448104100307"),
    _book("brennan2001", "Brennan, Robert L.", 2001, "Generalizability Theory", "Springer", "New York", doi="10.1007/978-1-4757-3456-0"),
    _book("burdick1992", "Burdick, Richard K.; Graybill, Franklin A.", 1992, "Confidence Intervals on Variance Components", "Marcel Dekker", "New York"),
    _book("burdick2005", "Burdick, Richard K.; Borror, Connie M.; Montgomery, Douglas C.", 2005, "Design and Analysis of Gauge R&R Studies: Making Decisions with Confidence Intervals in Random and Mixed ANOVA Models", "SIAM", "Philadelphia"),
    _article("cicchetti1990", "Cicchetti, Domenic V.; Feinstein, Alvan R.", 1990, "High agreement but low kappa: II. Resolving the paradoxes", "Journal of Clinical Epidemiology", "43", "6", "551-558", "10.1016/0895-4356(90)90159-M"),
    _article("clopper1934", "Clopper, C. J.; Pearson, E. S.", 1934, "The use of confidence or fiducial limits illustrated in the case of the binomial", "Biometrika", "26", "4", "404-413", "10.1093/biomet/26.4.404"),
    _article("cochran1950", "Cochran, W. G.", 1950, "The comparison of percentages in matched samples", "Biometrika", "37", "3/4", "256-266"),
    _book("cochran1977", "Cochran, William G.", 1977, "Sampling Techniques", "Wiley", "New York", "3rd"),
    _article("cohen1960", "Cohen, Jacob", 1960, "A coefficient of agreement for nominal scales", EPM, "20", "1", "37-46", "10.1177/001316446002000104"),
    _article("cohen1968", "Cohen, Jacob", 1968, "Weighted kappa: Nominal scale agreement with provision for scaled disagreement or partial credit", BULLETIN, "70", "4", "213-220", "10.1037/h0026256"),
    _article("cornfield1956", "Cornfield, Jerome; Tukey, John W.", 1956, "Average values of mean squares in factorials", "The Annals of Mathematical Statistics", "27", "4", "907-949"),
    _article("cronbach1951", "Cronbach, Lee J.", 1951, "Coefficient alpha and the internal structure of tests", "Psychometrika", "16", "3", "297-334", "10.1007/BF02310555"),
    _book("efron1993", "Efron, Bradley; Tibshirani, Robert J.", 1993, "An Introduction to the Bootstrap", "Chapman & Hall", "New York"),
    _article("fagerland2013", "Fagerland, Morten W.; Lydersen, Stian; Laake, Petter", 2013, "The McNemar test for binary matched-pairs data: mid-p and asymptotic are better than exact conditional", "BMC Medical Research Methodology", "13", "", "91", "10.1186/1471-2288-13-91"),
    _book("fisher1935", "Fisher, R. A.", 1935, "The Design of Experiments", "Oliver and Boyd", "Edinburgh"),
    _article("fleiss1971", "Fleiss, Joseph L.", 1971, "Measuring nominal scale agreement among many raters", BULLETIN, "76", "5", "378-382", "10.1037/h0031619"),
    _book("fleiss2003", "Fleiss, Joseph L.; Levin, Bruce; Paik, Myunghee Cho", 2003, "Statistical Methods for Rates and Proportions", "Wiley", "Hoboken, NJ", "3rd"),
    _article("graybill1980", "Graybill, Franklin A.; Wang, Chih-Ming", 1980, "Confidence intervals on nonnegative linear combinations of variances", JASA, "75", "372", "869-873"),
    _article("griffiths1973", "Griffiths, D. A.", 1973, "Maximum likelihood estimation for the beta-binomial distribution and an application to the household distribution of the total number of cases of a disease", "Biometrics", "29", "4", "637-648"),
    _article("gwet2008", "Gwet, Kilem Li", 2008, "Computing inter-rater reliability and its variance in the presence of high agreement", "British Journal of Mathematical and Statistical Psychology", "61", "1", "29-48", "10.1348/000711006X126600"),
    _book("gwet2014", "Gwet, Kilem L.", 2014, "Handbook of Inter-Rater Reliability", "Advanced Analytics", "Gaithersburg, MD", "4th"),
    Entry(key="hanson1991", kind="techreport", authors=("Hanson, Bradley A.",), year="1991",
          title="Method of moments estimates for the four-parameter beta compound binomial model and the calculation of classification consistency indexes",
          institution="American College Testing", address="Iowa City, IA", number="91-5", note="ACT Research Report 91-5"),
    _article("harman1966", "Harman, Harry H.; Jones, Wayne H.", 1966, "Factor analysis by minimizing residuals (minres)", "Psychometrika", "31", "3", "351-368"),
    _article("hesterberg2015", "Hesterberg, Tim C.", 2015, "What teachers should know about the bootstrap: Resampling in the undergraduate statistics curriculum", AMSTAT, "69", "4", "371-386"),
    _article("holm1979", "Holm, Sture", 1979, "A simple sequentially rejective multiple test procedure", "Scandinavian Journal of Statistics", "6", "2", "65-70"),
    _article("hyndman1996", "Hyndman, Rob J.; Fan, Yanan", 1996, "Sample quantiles in statistical packages", AMSTAT, "50", "4", "361-365"),
    _book("kish1965", "Kish, Leslie", 1965, "Survey Sampling", "Wiley", "New York"),
    _article("korn1990", "Korn, Edward L.; Graubard, Barry I.", 1990, "Simultaneous testing of regression coefficients with complex survey data: Use of Bonferroni t statistics", AMSTAT, "44", "4", "270-276"),
    _article("korn1998", "Korn, Edward L.; Graubard, Barry I.", 1998, "Confidence intervals for proportions with small expected number of positive counts estimated from survey data", SURVEY, "24", "2", "193-201"),
    _book("krippendorff2004", "Krippendorff, Klaus", 2004, "Content Analysis: An Introduction to Its Methodology", "Sage", "Thousand Oaks, CA", "2nd"),
    _article("kuder1937", "Kuder, G. F.; Richardson, M. W.", 1937, "The theory of the estimation of test reliability", "Psychometrika", "2", "3", "151-160", "10.1007/BF02288391"),
    _article("levin1977", "Levin, Bruce; Reeds, James", 1977, "Compound multinomial likelihood functions are unimodal: Proof of a conjecture of I. J. Good", "The Annals of Statistics", "5", "1", "79-87"),
    _article("livingston1995", "Livingston, Samuel A.; Lewis, Charles", 1995, "Estimating the consistency and accuracy of classifications based on test scores", "Journal of Educational Measurement", "32", "2", "179-197"),
    _article("lord1965", "Lord, Frederic M.", 1965, "A strong true-score theory, with applications", "Psychometrika", "30", "3", "239-270"),
    _article("maxwell1970", "Maxwell, A. E.", 1970, "Comparing the classification of subjects by two independent judges", "British Journal of Psychiatry", "116", "535", "651-655"),
    _book("mcdonald1999", "McDonald, Roderick P.", 1999, "Test Theory: A Unified Treatment", "Lawrence Erlbaum", "Mahwah, NJ"),
    _article("mcgraw1996", "McGraw, Kenneth O.; Wong, S. P.", 1996, "Forming inferences about some intraclass correlation coefficients", "Psychological Methods", "1", "1", "30-46"),
    _article("mcnemar1947", "McNemar, Quinn", 1947, "Note on the sampling error of the difference between correlated proportions or percentages", "Psychometrika", "12", "2", "153-157"),
    _article("neyman1934", "Neyman, Jerzy", 1934, "On the two different aspects of the representative method: The method of stratified sampling and the method of purposive selection", "Journal of the Royal Statistical Society", "97", "4", "558-625"),
    _article("patterson1971", "Patterson, H. D.; Thompson, R.", 1971, "Recovery of inter-block information when block sizes are unequal", "Biometrika", "58", "3", "545-554"),
    _book("pepe2003", "Pepe, Margaret Sullivan", 2003, "The Statistical Evaluation of Medical Tests for Classification and Prediction", "Oxford University Press", "Oxford"),
    _article("phipson2010", "Phipson, Belinda; Smyth, Gordon K.", 2010, "Permutation P-values should never be zero: Calculating exact P-values when permutations are randomly drawn", "Statistical Applications in Genetics and Molecular Biology", "9", "1", "Article 39"),
    _article("przyborowski1940", "Przyborowski, J.; Wilenski, H.", 1940, "Homogeneity of results in testing samples from Poisson series: With an application to testing clover seed for dodder", "Biometrika", "31", "3/4", "313-323"),
    _article("rao1982", "Rao, C. Radhakrishna", 1982, "Diversity and dissimilarity coefficients: A unified approach", "Theoretical Population Biology", "21", "1", "24-43"),
    _article("scott1955", "Scott, William A.", 1955, "Reliability of content analysis: The case of nominal scale coding", "Public Opinion Quarterly", "19", "3", "321-325", "10.1086/266577"),
    _book("searle1992", "Searle, Shayle R.; Casella, George; McCulloch, Charles E.", 1992, "Variance Components", "Wiley", "New York"),
    _article("spearman1904", "Spearman, C.", 1904, "The proof and measurement of association between two things", "American Journal of Psychology", "15", "1", "72-101", "10.2307/1412159"),
    _article("stuart1955", "Stuart, Alan", 1955, "A test for homogeneity of the marginal distributions in a two-way classification", "Biometrika", "42", "3/4", "412-416"),
    _article("tarone1979", "Tarone, Robert E.", 1979, "Testing the goodness of fit of the binomial distribution", "Biometrika", "66", "3", "585-590"),
    _article("ting1990", "Ting, Naitee; Burdick, Richard K.; Graybill, Franklin A.; Jeyaratnam, S.; Lu, Tai-Fang C.", 1990, "Confidence intervals on linear combinations of variance components that are unrestricted in sign", "Journal of Statistical Computation and Simulation", "35", "", "135-143"),
    _article("weerahandi1993", "Weerahandi, Samaradasa", 1993, "Generalized confidence intervals", JASA, "88", "423", "899-905"),
    _article("wilson1927", "Wilson, Edwin B.", 1927, "Probable inference, the law of succession, and statistical inference", JASA, "22", "158", "209-212"),
    _book("wolter2007", "Wolter, Kirk M.", 2007, "Introduction to Variance Estimation", "Springer", "New York", "2nd"),
    Entry(key="zheng2023", kind="misc", year="2023", eprint="2306.05685",
          title="Judging LLM-as-a-Judge with MT-Bench and Chatbot Arena",
          authors=("Zheng, Lianmin", "Chiang, Wei-Lin", "Sheng, Ying", "Zhuang, Siyuan", "Wu, Zhanghao", "Zhuang, Yonghao", "Lin, Zi", "Li, Zhuohan", "Li, Dacheng", "Xing, Eric P.", "Zhang, Hao", "Gonzalez, Joseph E.", "Stoica, Ion")),
    _article("zou2008", "Zou, Guang Yong; Donner, Allan", 2008, "Construction of confidence limits about effect measures: A general approach", "Statistics in Medicine", "27", "10", "1693-1702"),
)
# fmt: on

# Which entries an interval's ``method`` rests on, by its name in the results table.
METHODS: dict[str, tuple[str, ...]] = {
    "jackknife_t": ("wolter2007",),
    "linearised_t": ("wolter2007",),
    "korn_graubard": ("korn1998",),
    "clopper_pearson": ("clopper1934",),
    "percentile": ("efron1993",),
    "wilson": ("wilson1927",),
    "poisson_ratio": ("przyborowski1940",),
    "modified_large_sample": ("graybill1980", "ting1990", "burdick1992"),
    "chi_square": ("burdick1992",),
    "f_ratio": ("brennan2001",),
    "generalised_confidence": ("weerahandi1993", "burdick2005"),
    "mover_clopper_pearson": ("zou2008", "clopper1934"),
    "mover_korn_graubard": ("zou2008", "korn1998"),
    "mover_independent": ("zou2008",),
}

# Sources that are no publication: what the tool itself defines.
OURS = (
    "Contract of voirdire",
    "voirdire plan",
    "Share of verdicts",
    "One minus the observed agreement",
)


@cache
def _by_key() -> dict[str, Entry]:
    return {entry.key: entry for entry in ENTRIES}


def entry(key: str) -> Entry:
    """The entry of a key; ``KeyError`` where there is none."""
    return _by_key()[key]


@cache
def keys_of(source: str) -> tuple[str, ...]:
    """The keys of the entries that a source names, in the order in which it names them."""
    found = dict[str, int]()
    for one in ENTRIES:
        places = [
            m.start() for p in one.phrases for m in re.finditer(rf"(?<!\w){re.escape(p)}", source)
        ]
        if places:
            found[one.key] = min(places)
    return tuple(sorted(found, key=lambda key: found[key]))


def cite(*keys: str) -> Cite:
    """A citation of these entries: ``(Cohen 1960; Gwet 2008)``; each once."""
    once = tuple(dict.fromkeys(keys))
    return Cite(f"({'; '.join(entry(key).cited for key in once)})", once)


def cited_in(document: Document) -> tuple[str, ...]:
    """The keys that a document's text cites, in order of their entries' authors."""
    from voirdire.document import Paragraph, Paste, Table

    found = set[str]()
    for block in document.blocks:
        texts: Iterable[object] = ()
        if isinstance(block, Paragraph):
            texts = block.text
        elif isinstance(block, Paste):
            texts = (part for line in block.lines for part in line)
        elif isinstance(block, Table):
            texts = (
                *block.note,
                *(
                    p
                    for row in block.rows
                    for c in row
                    if isinstance(c.value, tuple)
                    for p in c.value
                ),
            )
        for part in texts:
            if isinstance(part, Cite):
                found |= set(part.keys)
    return tuple(e.key for e in ENTRIES if e.key in found)


def used_in(document: Document) -> tuple[str, ...]:
    """The keys behind a document: what its text cites, its results' statistics and their intervals."""
    found = set(cited_in(document))
    for estimate in document.estimates:
        found |= set(keys_of(estimate.estimand.source.text))
        for interval in (estimate.interval, estimate.edge):
            if interval is not None:
                found |= set(METHODS.get(interval.method, ()))
    return tuple(e.key for e in ENTRIES if e.key in found)
