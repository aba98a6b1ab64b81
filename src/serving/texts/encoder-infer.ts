import { performance } from 'node:perf_hooks';
import type { Admission, TalliedAnswer } from '../../../callbacks/infer/answer-tally.js';
import type { InferListener, InferRequest, InferTensor } from '../../../callbacks/infer/infer-types.js';
import { HostClosedError, QueueFullError } from '../../../callbacks/token-request.js';
import type { EncoderBatch } from '../../../host/encoder-host.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';
import { classify, scoresInTurns } from '../../encoding/classify.js';
import { embed, type OnAccepted } from '../../encoding/embed.js';
import type { EncoderModel, RowEngine } from '../../encoding/encoder-model.js';
import { scorePairs } from '../../encoding/score.js';
import { inCallersWords } from '../../generation/refusals.js';
import { checkedRequest } from '../check-request.js';
import { asInferError, reasonOf } from '../infer-failure.js';
import type { InferModel, ModelActivity } from '../infer-model.js';
import { InferenceCounters } from '../inference-counters.js';
import { endModelSpan, modelSpan } from '../model-span.js';
import type { EngineActivity } from './engine-activity.js';
import { withParameterInputs } from './parameter-inputs.js';
import { floatTensor, textsOf } from './tensor-values.js';
import { inputOf, outputOf, textConfig } from './text-config.js';

/** Texts of one request; each is a row of its answer. */
const MAX_TEXTS = 2048;
/** Names of the output, by what the model makes of texts. */
const OUTPUTS = { embedding: 'embedding', score: 'score', classification: 'label_scores' } as const;

/**
 * An encoder by tensors of texts: `text_input` to `embedding` or `label_scores`, or `query` and `document` to `score`. It shares its engine, and
 * with it each batch, with the routes of embeddings, and counts what comes by either.
 */
export class EncoderInfer implements InferModel {
  readonly kind = 'encoder';
  readonly config: ModelConfig;
  readonly version: string;
  readonly modelDirectory = null;
  readonly labels: readonly string[] | undefined;
  /** The model as every protocol has to ask it, so that its requests are counted. */
  readonly counted: EncoderModel;
  readonly #counters = new InferenceCounters();
  readonly #activity: () => EngineActivity;

  /**
   * @param model the encoder; its engine is asked through `counted` from now on
   * @param activity what its engine does
   */
  constructor(name: string, version: string, model: EncoderModel, activity: () => EngineActivity) {
    this.#activity = activity;
    this.version = version;
    const { head, outputWidth, engine } = model;
    const isScore = head.kind === 'score';
    this.config = textConfig(
      name,
      {
        max_batch_size: MAX_TEXTS,
        input: isScore
          ? [inputOf('query', 'TYPE_STRING', false), inputOf('document', 'TYPE_STRING', false)]
          : [inputOf('text_input', 'TYPE_STRING', false)],
        output: [outputOf(OUTPUTS[head.kind], 'TYPE_FP32', [isScore ? 1 : outputWidth])],
      },
      { task: head.kind, max_context_tokens: model.maxSeqLen },
    );
    this.labels = head.kind === 'classification' ? head.labels : undefined;
    this.counted = { ...model, engine: this.#count(engine) };
  }

  /** Counts a batch that the engine has run, of whatever requests. */
  noteBatch({ sequences, forwardMs }: EncoderBatch): void {
    this.#counters.noteExecution(sequences, { inputNs: 0, inferNs: 1e6 * forwardMs, outputNs: 0 });
  }

  statistics() {
    return this.#counters.read();
  }

  activity(): ModelActivity {
    return { ...this.#activity(), lastInference: this.#counters.lastInference };
  }

  failures() {
    return this.#counters.failures();
  }

  infer(request: InferRequest, on: InferListener): void {
    const { inputs } = checkedRequest(this.config, withParameterInputs(this.config, request, []));
    const span = modelSpan(request.trace, this.config, this.version, request.id, performance.now());
    this.#answer(inputs, request).then(
      (output) => {
        endModelSpan(span, null);
        on.response({ outputs: [output] });
        on.end();
      },
      (error: unknown) => {
        const told = asInferError(inCallersWords(error, 'text_input'));
        endModelSpan(span, told);
        on.fail(told);
      },
    );
  }

  /** Makes the output, and reports it to its caller's tally. */
  async #answer(
    inputs: readonly InferTensor[],
    { signal, terms }: Pick<InferRequest, 'signal' | 'terms'>,
  ): Promise<InferTensor> {
    let admission: Admission | undefined;
    let answer: TalliedAnswer | undefined;
    const model = this.config.name;
    try {
      const output = await this.#rows(inputs, signal, async (promptTokens) => {
        admission = await terms?.admit?.({ promptTokens, outputTokens: 0, answers: 1 }, terms.tally);
        answer = (admission?.tally ?? terms?.tally)?.begin({ model, promptTokens });
      });
      answer?.onEnd('stop');
      return output;
    } catch (error) {
      if (error instanceof QueueFullError || error instanceof HostClosedError) admission?.cancel();
      answer?.onEnd(signal?.aborted ? 'abort' : 'error');
      throw error;
    }
  }

  async #rows(
    inputs: readonly InferTensor[],
    signal: AbortSignal | undefined,
    onAccepted: OnAccepted,
  ): Promise<InferTensor> {
    const texts = inputs.map(textsOf);
    if (this.counted.head.kind === 'score') {
      const [queries = [], documents = []] = texts;
      const pairs = queries.map((query, i) => [query, documents[i]!] as const);
      const names = { param: 'document', pair: (index: number) => `pair ${index}` };
      const { scores } = await scorePairs(this.counted, pairs, { signal }, names, onAccepted);
      return floatTensor(OUTPUTS.score, Float32Array.from(scores), [scores.length, 1]);
    }
    const { kind } = this.counted.head;
    const [input] = texts;
    const rows =
      kind === 'classification'
        ? await scoresInTurns(
            await classify(this.counted, input!, { signal }, onAccepted),
            (scores) => scores,
          )
        : (await embed(this.counted, input!, { signal }, onAccepted)).embeddings;
    const width = this.counted.outputWidth;
    const values = new Float32Array(rows.length * width);
    for (const [i, row] of rows.entries()) values.set(row, i * width);
    return floatTensor(OUTPUTS[kind], values, [rows.length, width]);
  }

  #count(engine: RowEngine): RowEngine {
    return {
      encode: (sequences, options) => {
        const startMs = performance.now();
        const sinceStart = () => 1e6 * (performance.now() - startMs);
        const noteFailure = (error: unknown) => {
          this.#counters.noteFailure(
            reasonOf(asInferError(inCallersWords(error, 'text_input'))),
            sinceStart(),
          );
        };
        let rows: Promise<Float32Array[]>;
        try {
          rows = engine.encode(sequences, options);
        } catch (error) {
          noteFailure(error);
          throw error;
        }
        rows.then(
          () => {
            this.#counters.noteSuccess(sequences.length, sinceStart(), 0, NO_TIMES);
          },
          (error: unknown) => {
            noteFailure(error);
          },
        );
        return rows;
      },
    };
  }
}

const NO_TIMES = { inputNs: 0, inferNs: 0, outputNs: 0 };
