import { MAX_INT32 } from '../../base/int32.js';
import type { PieceSource } from '../../callbacks/piece-source.js';
import { type FieldName, NAMED_FIELDS, REQUEST_FIELDS } from '../../callbacks/request/fields.js';
import type { OptionsOf } from '../../callbacks/request/parameter.js';
import { NAMED_PARAMETERS, type PARAMETERS } from '../../callbacks/request/parameters.js';
import { drawSeed } from '../../callbacks/sampling-params.js';
import { SharedTensors } from '../../callbacks/shared-tensors.js';
import type {
  ContextProgress,
  FinishReason,
  ReasoningBudgetOptions,
  TokenPiece,
  TokenRequest,
  TokenTiming,
} from '../../callbacks/token-request.js';
import { StopStrings } from '../../models/tokenizer/stop-strings.js';
import { ContextLengthError, contextWords, InvalidRequestError } from '../errors/request-errors.js';
import type { PromptLogProb, PromptLogProbList } from './returned-logits.js';
import type { ShownToken, TextModel } from './text-model.js';
import { TextStream } from './text-stream.js';
import type { AnswerParser } from './tools/types.js';

/** Options of how tokens are chosen. Every default changes nothing, except that of temperature, which is 1. */
export interface SamplingOptions extends Omit<OptionsOf<typeof PARAMETERS>, 'seed'> {
  /** Token ids that may be generated; default: all. */
  allowedTokens?: Int32Array | readonly number[] | undefined;
  /** Most tokens of reasoning: after them the token that ends it is forced. */
  reasoningBudget?: ReasoningBudgetOptions | undefined;
  /** Numbers added to the logits of tokens at every step, by token id; -Infinity: never drawn. */
  logitBias?: ReadonlyMap<number, number> | undefined;
  /** Numbers added to all logits at every step, one for each token of the vocabulary. */
  embeddingBias?: Float32Array | undefined;
  /** Key of the random numbers; default: a random one. */
  seed?: bigint | number | undefined;
}

/** Fields of the engine's request that a request for text has in a form of its own, or in `engine` alone. */
const FIELDS_APART = [
  ...(['maxNewTokens', 'endTokenIds', 'stopWords', 'streaming', 'knownOutputIds'] as const),
  ...(['numSequences', 'firstSequenceIndex', 'draftTokens', 'draftLogits'] as const),
  ...(['returnLogProbs', 'topLogProbs', 'returnContextLogProbs', 'topContextLogProbs'] as const),
  ...(['returnContextProgress', 'loraTaskId', 'adapter', 'adapterName'] as const),
] as const satisfies readonly FieldName[];

type SharedName = Exclude<FieldName, (typeof FIELDS_APART)[number]>;

const isShared = (name: FieldName): name is SharedName =>
  !(FIELDS_APART as readonly FieldName[]).includes(name);

/** Fields that a request for text has from the engine's, unchanged. */
const SHARED_FIELDS = NAMED_FIELDS.map(([name]) => name).filter(isShared);

type Given<T> = { [Name in keyof T]: T[Name] | undefined };
type SharedFields = Given<Pick<TokenRequest, SharedName>>;

/** How an answer is read, and what comes with it. */
export interface AnswerOptions
  extends Given<
    Pick<TokenRequest, 'returnGenerationLogits' | 'returnContextLogits' | 'logitsPostProcessor' | 'clientId'>
  > {
  /** Token ids that end the answer; their text is part of it only with includeStop. */
  stopTokens?: readonly number[] | undefined;
  /** Keeps the stop string or stop token in the answer. Default false. */
  includeStop?: boolean | undefined;
  /** Continues past the model's own end tokens. Default false. */
  ignoreEos?: boolean | undefined;
  /** Leaves special tokens out of the text. Default true. */
  skipSpecialTokens?: boolean | undefined;
  /**
   * Log-probs of the answer's tokens. Default: none; 0: those of the drawn tokens; n: those of the n most probable
   * tokens too.
   */
  logProbs?: number | undefined;
  /**
   * Log-probs of the prompt's tokens, in the first piece. Default: none; 0: those of the tokens themselves; n: those of
   * the n most probable tokens too.
   */
  contextLogProbs?: number | undefined;
}

/** A request at the level of text: prompt tokens in, pieces of text out. Fields of TokenRequest's names are documented there. */
export interface TextRequest
  extends Omit<SamplingOptions, keyof SharedFields>,
    Omit<AnswerOptions, keyof SharedFields>,
    SharedFields {
  promptTokens: Int32Array | readonly number[];
  /** Its pictures have been seen: see AskedRequest. */
  unseen?: undefined;
  /** Most tokens to generate. */
  maxTokens: number;
  /** Texts that end the generation. Several requests of one caller may bring the same StopStrings, made once. */
  stop?: readonly string[] | StopStrings | undefined;
  /** Makes the parser of an answer with reasoning or calls, in whose content alone stop strings are looked for. Default: in all text. */
  createParser?: (() => AnswerParser) | null | undefined;
  /** Special tokens that are not skipped. */
  shownTokens?: readonly ShownToken[] | undefined;
  /** Pieces before the text report how far the prompt is. */
  contextProgress?: boolean | undefined;
  /** The caller's field that the guide came from, for errors. */
  guideParam?: string | undefined;
  /** Index of this sequence among several from the prompt; it selects the random numbers. Default 0. */
  sequenceIndex?: number | undefined;
  /** Name of the field that holds the prompt, for errors. */
  promptParam?: string | undefined;
  /** Fields of the engine's request that texts have no words for; endTokenIds and stopWords go before what they would be otherwise. */
  engine?: EngineFields | undefined;
}

/** What only those can say who know the model's tokens. */
export type EngineFields = Partial<
  Pick<
    TokenRequest,
    | 'endTokenIds'
    | 'stopWords'
    | 'draftTokens'
    | 'draftLogits'
    | 'knownOutputIds'
    | 'retention'
    | 'loraTaskId'
    | 'adapter'
  >
>;

/** A token and its log-prob at one position. */
export interface TokenLogProb {
  token: number;
  logProb: number;
}

/** Log-prob of a generated token, with its place in the text and the most probable tokens there. */
export interface TextLogProb extends TokenLogProb {
  /** Offset of the token's text in the generated text, in UTF-16 units. */
  offset: number;
  /** The same offset in code points, as OpenAI's API counts. */
  codePointOffset: number;
  top: readonly TokenLogProb[];
}

/** A piece of an answer. */
export interface TextPiece {
  /** Text that is new since the last piece. */
  text: string;
  /**
   * Tokens of this piece. Their text may come in a later piece, where it is half a character or could begin a stop
   * string.
   */
  tokens: readonly number[];
  /** Log-probs of the tokens whose text leaves with this piece. */
  logProbs: readonly TextLogProb[];
  /** Raw logits of `tokens`, [tokens.length x vocabulary]; with returnGenerationLogits. */
  generationLogits?: Float32Array;
  /** Raw logits of the prompt's tokens, [prompt x vocabulary]; in the first piece, with returnContextLogits. */
  contextLogits?: Float32Array;
  /** Log-probs of each prompt token but the first, given those before it; in the first piece, with contextLogProbs. */
  contextLogProbs?: readonly PromptLogProb[];
  /**
   * Log-probs of the prompt for a listener, in place of contextLogProbs: for a long prompt the objects alone are a
   * while's work.
   */
  contextLogProbList?: PromptLogProbList;
  /** How far the prompt is; with contextProgress. The piece may have nothing else. */
  contextProgress?: ContextProgress;
  /** Number of prompt tokens found in the cache; in the first piece that has tokens. */
  cachedTokens?: number;
  /** Sum of a beam's log-probs, that of an end token included; only in pieces of beams. */
  cumLogProb?: number;
  /** Why the answer ended; null for every piece but the last. */
  finishReason: FinishReason | null;
  /** The stop string or stop token that ended the generation, else null. */
  stopReason: string | number | null;
  /** Times of the request; in the last piece, unless a stop string ended the request before the engine did. */
  timing?: TokenTiming;
}

/**
 * Checks the request's lengths. @throws ContextLengthError, with the numbers, where the model's context cannot hold it.
 */
export function checkLengths(model: TextModel, request: TextRequest): void {
  const prompt = request.promptTokens.length;
  const param = request.promptParam ?? null;
  if (prompt === 0) throw new InvalidRequestError('The prompt has no tokens; at least one is needed.', param);
  if (prompt > model.maxInputLen) {
    throw new ContextLengthError(
      `${contextWords(model.maxSeqLen)}the prompt has ${prompt} tokens, of ${model.maxInputLen} at most. Please reduce its length.`,
      param,
    );
  }
  if (prompt + request.maxTokens > model.maxSeqLen) {
    throw new ContextLengthError(
      `${contextWords(model.maxSeqLen)}the request needs ${prompt + request.maxTokens}: ${prompt} in the prompt and ` +
        `${request.maxTokens} to be generated. Please reduce one of them.`,
      param,
    );
  }
  checkTokens(model, request, param);
}

/** Ids from the vocabulary's size on name rows that the request brings, or spell its pictures. */
function checkTokens(model: TextModel, request: TextRequest, param: string | null): void {
  const hasPictures = (request.imageGrids?.length ?? 0) > 0;
  const numIds = hasPictures ? MAX_INT32 : model.vocabSize + (request.promptEmbeddings?.length ?? 0);
  for (const token of request.promptTokens) {
    if (!Number.isInteger(token) || token < 0 || token >= numIds) {
      throw new InvalidRequestError(
        `The prompt holds token ${token}, but the vocabulary has the ids 0 to ${model.vocabSize - 1}${ownIds(model.vocabSize, numIds)}.`,
        param,
      );
    }
  }
}

function ownIds(vocabSize: number, numIds: number): string {
  return numIds === vocabSize ? '' : `, promptEmbeddings those up to ${numIds - 1}`;
}

/**
 * Starts a request: checks and queues it before returning, so that a refusal is known before any answer is begun.
 * @throws InvalidRequestError, ContextLengthError, QueueFullError.
 */
export function generateText(model: TextModel, request: TextRequest): PieceSource<TextPiece> {
  checkLengths(model, request);
  return started(model, request);
}

/** Starts each candidate as a request of its own. */
function startAlone(model: TextModel, request: TextRequest, count: number): PieceSource<TokenPiece>[] {
  const { beams: _, sequenceIndex: first = 0, ...rest } = request;
  checkLengths(model, request);
  const own = request.shared === undefined ? new SharedTensors() : null;
  const alone = { ...rest, shared: own ?? request.shared };
  // The prompt is one, however often it is computed.
  const progressOf = (i: number) => (i === 0 ? {} : { contextProgress: false });
  const sources = Array.from({ length: count }, (__, i) =>
    model.engine.submit(
      tokenRequest(model, { ...alone, ...ownKnown(rest, i), ...progressOf(i), sequenceIndex: first + i }),
    ),
  );
  own?.clear();
  return sources;
}

/** What sequence `i` has generated before, where it runs without the others. */
function ownKnown({ engine }: TextRequest, i: number): Partial<TextRequest> {
  const known = engine?.knownOutputIds;
  return known === undefined ? {} : { engine: { ...engine, knownOutputIds: known.slice(i, i + 1) } };
}

function started(model: TextModel, request: TextRequest): PieceSource<TextPiece> {
  return new TextStream(model, request, model.engine.submit(tokenRequest(model, request)));
}

/**
 * Starts `count` answers to one prompt: beams where the request asks for them, else sequences drawn independently. They run
 * as one request, whose prompt is computed once, where the engine can hold all of them at once; else one by one, with the
 * same random numbers.
 * @throws as generateText.
 */
export function generateTexts(
  model: TextModel,
  request: TextRequest,
  count: number,
): PieceSource<TextPiece>[] {
  const read = { ...request, stop: request.stop && StopStrings.of(request.stop) };
  return generateTokens(model, read, count).map((tokens) => new TextStream(model, read, tokens));
}

/** The same before it is text: stop strings are not looked for. @throws as generateText. */
export function generateTokens(
  model: TextModel,
  request: TextRequest,
  count: number,
): PieceSource<TokenPiece>[] {
  const { promptTokens, maxTokens, beams, seed = drawSeed() } = request;
  const isBeamSearch = beams !== undefined && beams.width > 1;
  const together = model.fitsTogether?.(count, promptTokens.length, maxTokens) ?? false;
  if (count === 1 || !(isBeamSearch || together) || model.engine.submitSeveral === undefined) {
    return startAlone(model, { ...request, seed }, count);
  }
  checkLengths(model, request);
  const asked = tokenRequest(model, { ...request, seed });
  if (!isBeamSearch) asked.numSequences = count;
  return model.engine.submitSeveral(asked);
}

/** The fields and parameters of the engine's request that this one has; the others have the engine's defaults. */
function givenFields(request: TextRequest): Partial<TokenRequest> {
  const given: Record<string, unknown> = {};
  for (const name of SHARED_FIELDS) {
    if (request[name] !== undefined) given[name] = request[name];
  }
  for (const { name, option } of NAMED_PARAMETERS) {
    const value = request[option as keyof TextRequest];
    if (value !== undefined) given[name] = value;
  }
  return given;
}

function tokenRequest(model: TextModel, request: TextRequest): TokenRequest {
  const { logProbs, contextLogProbs } = request;
  return {
    priority: REQUEST_FIELDS.priority.default,
    ...givenFields(request),
    promptTokens: request.promptTokens,
    maxNewTokens: request.maxTokens,
    seed: request.seed === undefined ? drawSeed() : BigInt.asUintN(64, BigInt(request.seed)),
    ...(request.sequenceIndex ? { firstSequenceIndex: request.sequenceIndex } : {}),
    endTokenIds: request.ignoreEos ? [] : model.endTokens,
    // Stop tokens are sent as stop words, which are returned: this shows which one ended the request.
    stopWords: (request.stopTokens ?? []).map((token) => [token]),
    ...(logProbs === undefined ? {} : { returnLogProbs: true, topLogProbs: logProbs }),
    ...(contextLogProbs === undefined
      ? {}
      : { returnContextLogProbs: true, topContextLogProbs: contextLogProbs }),
    ...(request.contextProgress ? { returnContextProgress: true } : {}),
    ...request.engine,
  };
}
