import { randomUUID } from 'node:crypto';
import type { TextLogProb } from '../../generation/text-generation.js';
import type { ServedGenerator } from '../../serving/served-model.js';
import type { ChoiceRun } from '../answering/choice-run.js';
import { type AnswerRun, collect } from '../answering/respond.js';
import { finishReason, stopReason, type Usage, usage } from '../answering/usage.js';
import { jsonAnswer } from '../web/bodies/json-answer.js';
import { JsonList, JsonObject } from '../web/bodies/json-parts.js';
import type { CompletionRequest } from './schemas/completions.js';

/** One choice of an answer that is not streamed. */
export interface CollectedChoice {
  text: string;
  tokens: number[];
  logProbs: TextLogProb[];
  finish: 'stop' | 'length';
  stopReason: string | number | null;
}

/** A run as the fields around its choices show it. */
type EnvelopeRun = AnswerRun &
  Pick<ChoiceRun, 'numChoices' | 'completionTokens' | 'cachedTokens' | 'engines' | 'addId'>;

export interface EnvelopeOptions {
  model: ServedGenerator;
  run: EnvelopeRun;
  /** Number of tokens of all prompts. */
  promptTokens: number;
  /** Number of those that are of pictures. Default 0. */
  imageTokens?: number;
  idPrefix: 'chatcmpl' | 'cmpl';
  /** Number of reasoning tokens so far; absent: the model does not reason. */
  reasoningTokens?: () => number;
}

/** Fields around an answer's choices, whole or in chunks, the same on all routes. */
export class Envelope {
  readonly #options: EnvelopeOptions;
  readonly #id: string;
  readonly #created = Math.floor(Date.now() / 1000);

  constructor(options: EnvelopeOptions) {
    this.#options = options;
    this.#id = `${options.idPrefix}-${randomUUID()}`;
    options.run.addId(this.#id);
  }

  /**
   * Collects the choices to their end and answers with all of them.
   * @param toJson called with each choice when it is written. @param read may look at all choices before anything is
   * written.
   */
  async whole(
    object: string,
    clientSignal: AbortSignal,
    toJson: (choice: CollectedChoice, index: number) => unknown,
    besides: () => object = () => ({}),
    read?: (choices: readonly CollectedChoice[]) => Promise<void>,
  ): Promise<Response> {
    const { run } = this.#options;
    const choices = Array.from({ length: run.numChoices }, (): CollectedChoice => {
      return { text: '', tokens: [], logProbs: [], finish: 'stop', stopReason: null };
    });
    await collect(run, clientSignal, (index, piece) => {
      const choice = choices[index]!;
      choice.text += piece.text;
      choice.tokens.push(...piece.tokens);
      choice.logProbs.push(...piece.logProbs);
      if (piece.finishReason !== null) choice.finish = finishReason(piece.finishReason);
      choice.stopReason = stopReason(piece);
    });
    await read?.(choices);
    return jsonAnswer(
      new JsonObject({
        ...this.fields(object),
        choices: JsonList.of(choices, toJson),
        usage: this.usage(),
        ...besides(),
      }),
    );
  }

  /** Frames of a stream around the JSON of its choices. Parts common to all frames are serialised once. */
  frames(object: string, options: CompletionRequest['stream_options']) {
    let engines: readonly string[] | null = null;
    const headNow = () => `data: ${JSON.stringify(this.fields(object)).slice(0, -1)},"choices":[`;
    let written = headNow();
    const head = () => {
      // Which of several engines answers is known with its first piece.
      if (this.#options.run.engines !== engines) {
        engines = this.#options.run.engines;
        written = headNow();
      }
      return written;
    };
    const withUsage = () => `],"usage":${JSON.stringify(this.usage())}}\n\n`;
    // Without usage at all there is none in each chunk either.
    const isContinuous = options?.continuous_usage_stats === true && options.include_usage !== false;
    const tail = () => {
      if (isContinuous) return withUsage();
      return options?.include_usage ? '],"usage":null}\n\n' : ']}\n\n';
    };
    return {
      /** A chunk. `fields`: `,"name":value` of further fields next to the choices. */
      chunk: (choice: string, fields = ''): string =>
        fields === '' ? `${head()}${choice}${tail()}` : `${head()}${choice}]${fields}${tail().slice(1)}`,
      /** The last chunk, where the usage was asked for; else ''. */
      end: (): string => (options?.include_usage ? `${head()}${withUsage()}` : ''),
    };
  }

  /** Fields other than the choices. */
  fields(object: string) {
    const { model, run } = this.#options;
    // Several engines: prompts of one request went to different ones, or another one went on with an answer.
    const fingerprint = run.engines?.join('+') ?? model.fingerprint;
    return {
      id: this.#id,
      object,
      created: this.#created,
      model: model.id,
      system_fingerprint: fingerprint,
    };
  }

  usage(): Usage {
    const { promptTokens, run, reasoningTokens, imageTokens } = this.#options;
    return usage(promptTokens, run.completionTokens, run.cachedTokens, reasoningTokens?.(), imageTokens);
  }
}
