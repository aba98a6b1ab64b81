import { lengthOf } from '../../../models/jinja/text/code-points.js';
import type { TextLogProb, TextPiece } from '../../generation/text-generation.js';
import type { PromptTokens } from '../../generation/text-model.js';
import type { ServedGenerator } from '../../serving/served-model.js';
import type { ChoiceRun } from '../answering/choice-run.js';
import {
  echoLogProbs,
  echoOffsets,
  legacyLogProbs,
  oneAfterAnother,
  placedBehind,
  promptLogProbs,
  tokenNames,
} from '../answering/log-probs.js';
import { isOnlyProgress, progressField } from '../answering/prompt-progress.js';
import type { FrameWriter } from '../answering/respond.js';
import { timingsField, timingsOf } from '../answering/timings.js';
import { finishReason, stopReason } from '../answering/usage.js';
import { JsonNumbers, JsonObject } from '../web/bodies/json-parts.js';
import { type CollectedChoice, Envelope } from './envelope.js';
import type { CompletionRequest } from './schemas/completions.js';

/** Answer of a legacy completion, whole or as a stream. */
export class CompletionAnswer {
  readonly #model: ServedGenerator;
  readonly #request: CompletionRequest;
  readonly #prompts: readonly PromptTokens[];
  readonly #run: ChoiceRun;
  readonly #envelope: Envelope;
  /** Text of each prompt, where it is echoed. */
  readonly #echoes: readonly string[];
  /** Offsets of each prompt's tokens in its text, once one of its answers is written. */
  readonly #offsets = new Map<number, Int32Array>();

  constructor(
    model: ServedGenerator,
    request: CompletionRequest,
    prompts: readonly PromptTokens[],
    run: ChoiceRun,
  ) {
    this.#model = model;
    this.#request = request;
    this.#prompts = prompts;
    this.#run = run;
    const promptTokens = prompts.reduce((sum, prompt) => sum + prompt.length, 0);
    this.#envelope = new Envelope({ model, run, promptTokens, idPrefix: 'cmpl' });
    this.#echoes = request.echo ? request.prompt.map((prompt) => this.#promptText(prompt)) : [];
  }

  whole(clientSignal: AbortSignal): Promise<Response> {
    const toJson = (choice: CollectedChoice, index: number) =>
      new JsonObject({
        index,
        text: this.#echo(index) + choice.text,
        logprobs: this.#logProbs(index, choice.logProbs, true),
        finish_reason: choice.finish,
        stop_reason: choice.stopReason,
        ...this.#ofPrompt(index),
        ...(this.#givesTokens ? { token_ids: new JsonNumbers(choice.tokens) } : {}),
        seed: this.#seed(index),
      });
    return this.#envelope.whole('text_completion', clientSignal, toJson, () =>
      timingsOf(this.#request, this.#run),
    );
  }

  frameWriter(): FrameWriter {
    const { chunk, end } = this.#envelope.frames('text_completion', this.#request.stream_options);
    const begun = new Set<number>();
    const timings = () => timingsField(this.#request, this.#run);
    const told = (index: number, piece: TextPiece): string => {
      const progress = progressField(piece, this.#promptOf(index).length);
      const nothing = `{"index":${index},"text":"","logprobs":null,"finish_reason":null}`;
      return progress === '' ? '' : chunk(nothing, progress + timings());
    };
    return {
      piece: (index, piece) => {
        const progress = told(index, piece);
        if (isOnlyProgress(piece)) return progress;
        const isFirst = !begun.has(index);
        begun.add(index);
        const text = (isFirst ? this.#echo(index) : '') + piece.text;
        const hasTokens = this.#givesTokens && (piece.tokens.length > 0 || isFirst);
        const isEmpty = text === '' && piece.logProbs.length === 0 && !hasTokens;
        if (isEmpty && piece.finishReason === null) return progress;
        return progress + chunk(this.#chunkChoice(index, piece, text, isFirst), timings());
      },
      end,
    };
  }

  #chunkChoice(index: number, piece: TextPiece, text: string, isFirst: boolean): string {
    const isLast = piece.finishReason !== null;
    const reason = piece.finishReason === null ? 'null' : `"${finishReason(piece.finishReason)}"`;
    const logProbs = JSON.stringify(this.#logProbs(index, piece.logProbs, isFirst));
    const tokens = this.#givesTokens ? `,"token_ids":[${piece.tokens.join()}]` : '';
    const prompt =
      this.#givesTokens && isFirst ? `,"prompt_token_ids":[${this.#promptOf(index).join()}]` : '';
    const seed = isLast ? `,"seed":${this.#seed(index)}` : '';
    return (
      `{"index":${index},"text":${JSON.stringify(text)},"logprobs":${logProbs},` +
      `"finish_reason":${reason},"stop_reason":${JSON.stringify(stopReason(piece))}${prompt}${tokens}${seed}}`
    );
  }

  #promptText(prompt: string | readonly number[]): string {
    if (typeof prompt === 'string') return prompt;
    const detokenizer = this.#model.codec.createDetokenizer({ skipSpecialTokens: false });
    return detokenizer.push(prompt) + detokenizer.flush();
  }

  /** Index of the prompt that a choice answers. */
  #promptIndex(choice: number): number {
    return Math.floor(choice / (this.#request.n ?? 1));
  }

  #promptOf(choice: number): PromptTokens {
    return this.#prompts[this.#promptIndex(choice)]!;
  }

  #echo(choice: number): string {
    return this.#echoes[this.#promptIndex(choice)] ?? '';
  }

  #seed(choice: number): number {
    return Number(this.#run.seeds[this.#promptIndex(choice)]);
  }

  get #givesTokens(): boolean {
    return this.#request.return_token_ids ?? false;
  }

  /** Fields about a choice's prompt. */
  #ofPrompt(choice: number) {
    const { prompt_logprobs: asked } = this.#request;
    const count = asked === -1 ? this.#model.vocabSize : asked;
    const found = this.#run.promptLogProbs[this.#promptIndex(choice)] ?? null;
    return {
      ...(count === undefined ? {} : { prompt_logprobs: promptLogProbs(this.#model.codec, found, count) }),
      ...(this.#givesTokens ? { prompt_token_ids: new JsonNumbers(this.#promptOf(choice)) } : {}),
    };
  }

  /** Log-probs of the generated tokens, after those of an echoed prompt where they are the first. */
  #logProbs(choice: number, entries: readonly TextLogProb[], isFirst: boolean) {
    const { logprobs, echo } = this.#request;
    if (logprobs === undefined) return null;
    const { codec, vocabSize } = this.#model;
    const names = tokenNames(this.#request);
    const text = this.#echo(choice);
    const written = placedBehind(lengthOf(text), entries);
    if (!echo || !isFirst) return legacyLogProbs(codec, written, names);
    const found = this.#run.promptLogProbs[this.#promptIndex(choice)] ?? null;
    const count = logprobs === -1 ? vocabSize : logprobs;
    const ofPrompt = echoLogProbs(this.#promptOf(choice), this.#offsetsOf(choice), found, count);
    return legacyLogProbs(codec, oneAfterAnother(ofPrompt, written), names);
  }

  #offsetsOf(choice: number): Int32Array {
    const prompt = this.#promptIndex(choice);
    const known = this.#offsets.get(prompt);
    if (known !== undefined) return known;
    const offsets = echoOffsets(this.#model.codec, this.#echo(choice), this.#promptOf(choice));
    this.#offsets.set(prompt, offsets);
    return offsets;
  }
}
