"""Value types of tgraph, from a file on disk to a proven answer.

IRIs are plain strings, RDF terms are pyoxigraph's. Every ``start`` and ``end`` counts Unicode
code points in the stored text of a page, or of the document if its format has no pages; ``end``
is exclusive, so ``text[start:end]`` is the quote.

The modules hold the values by subject; callers import the values from this package."""

from tgraph.model.agents import NO_USAGE as NO_USAGE
from tgraph.model.agents import Agent as Agent
from tgraph.model.agents import Prompt as Prompt
from tgraph.model.agents import StepUsage as StepUsage
from tgraph.model.agents import Usage as Usage
from tgraph.model.answers import Answer as Answer
from tgraph.model.answers import AnswerJudgement as AnswerJudgement
from tgraph.model.answers import AnswerVerdict as AnswerVerdict
from tgraph.model.answers import Citation as Citation
from tgraph.model.answers import CitationKind as CitationKind
from tgraph.model.answers import ContextRow as ContextRow
from tgraph.model.answers import GraphRagResponse as GraphRagResponse
from tgraph.model.answers import Note as Note
from tgraph.model.answers import Only as Only
from tgraph.model.answers import Quotation as Quotation
from tgraph.model.answers import Sentence as Sentence
from tgraph.model.answers import ShownContext as ShownContext
from tgraph.model.answers import Source as Source
from tgraph.model.answers import Turn as Turn
from tgraph.model.answers import join_sentences as join_sentences
from tgraph.model.answers import sources_of as sources_of
from tgraph.model.computed import ComputedResult as ComputedResult
from tgraph.model.computed import ResultCell as ResultCell
from tgraph.model.computed import ResultRow as ResultRow
from tgraph.model.computed import ResultWitness as ResultWitness
from tgraph.model.computed import UnchosenQuery as UnchosenQuery
from tgraph.model.computed import WitnessPlace as WitnessPlace
from tgraph.model.computed import WitnessRole as WitnessRole
from tgraph.model.computed import build_rows as build_rows
from tgraph.model.computed import parse_term as parse_term
from tgraph.model.documents import Block as Block
from tgraph.model.documents import BlockKind as BlockKind
from tgraph.model.documents import CellValue as CellValue
from tgraph.model.documents import Chunk as Chunk
from tgraph.model.documents import ColumnKind as ColumnKind
from tgraph.model.documents import Document as Document
from tgraph.model.documents import Heading as Heading
from tgraph.model.documents import Inline as Inline
from tgraph.model.documents import Page as Page
from tgraph.model.documents import ReadingLoss as ReadingLoss
from tgraph.model.documents import ReadingReport as ReadingReport
from tgraph.model.documents import Segment as Segment
from tgraph.model.documents import SegmentKind as SegmentKind
from tgraph.model.documents import TableCell as TableCell
from tgraph.model.documents import TableRow as TableRow
from tgraph.model.documents import TextLine as TextLine
from tgraph.model.documents import TextSpan as TextSpan
from tgraph.model.documents import UnitCount as UnitCount
from tgraph.model.documents import kind_at as kind_at
from tgraph.model.documents import well_formed as well_formed
from tgraph.model.extraction import CellPlace as CellPlace
from tgraph.model.extraction import ClaimStatus as ClaimStatus
from tgraph.model.extraction import ExtractedClaim as ExtractedClaim
from tgraph.model.extraction import ExtractedEntity as ExtractedEntity
from tgraph.model.extraction import ExtractedRelationship as ExtractedRelationship
from tgraph.model.extraction import Extraction as Extraction
from tgraph.model.extraction import Occurrence as Occurrence
from tgraph.model.extraction import Span as Span
from tgraph.model.knowledge import Claim as Claim
from tgraph.model.knowledge import Community as Community
from tgraph.model.knowledge import CommunityReport as CommunityReport
from tgraph.model.knowledge import Edge as Edge
from tgraph.model.knowledge import Evidence as Evidence
from tgraph.model.knowledge import Finding as Finding
from tgraph.model.knowledge import Item as Item
from tgraph.model.knowledge import ItemKind as ItemKind
from tgraph.model.knowledge import Object as Object
from tgraph.model.retrieval import Candidate as Candidate
from tgraph.model.retrieval import EntityMatch as EntityMatch
from tgraph.model.retrieval import Judgement as Judgement
from tgraph.model.retrieval import QuestionPart as QuestionPart
from tgraph.model.retrieval import RankedOrder as RankedOrder
from tgraph.model.retrieval import Rejected as Rejected
from tgraph.model.retrieval import Retrieval as Retrieval
from tgraph.model.retrieval import RivalAnswers as RivalAnswers
from tgraph.model.retrieval import Selected as Selected
from tgraph.model.retrieval import Selection as Selection
