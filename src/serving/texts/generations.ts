import { onAbort } from '../../../base/on-abort.js';
import type { AnswerCost, AnswerTally } from '../../../callbacks/infer/answer-tally.js';
import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { InferListener, InferRequest, InferTensor } from '../../../callbacks/infer/infer-types.js';
import { fingerprintWithAdapter } from '../../../engine/peft/adapter-fingerprint.js';
import { answerMemory } from '../../generation/answer-memory.js';
import { seenRequest } from '../../generation/pictures/seen-request.js';
import type { TextModel } from '../../generation/text-model.js';
import type { AdapterSet } from '../adapters/model-adapters.js';
import type { ObserveRequest } from '../request-observer.js';
import { generationError } from './generation-error.js';
import { GenerationOutputs, stoppedOutputs, wantedOutputs } from './generation-outputs.js';
import { GenerationRun } from './generation-run.js';
import { GivenInputs } from './given-inputs.js';
import { type AskedGeneration, type Generation, readGeneration } from './read-generation.js';
import { termFields } from './term-fields.js';

/** A model that generates text, as requests for tensors need it. */
export interface Generating {
  /** Name of the model whose engine it is, for what is observed. */
  readonly observedName: string;
  readonly model: TextModel;
  /** null: it takes no adapters. */
  readonly adapters: AdapterSet | null;
  /** Most log-probs of a token in addition to its own. */
  readonly maxLogProbs: number;
  /**
   * Fingerprint of its engine; null: engines elsewhere answer, and the sender of requests to them knows their
   * names.
   */
  readonly fingerprint: () => string | null;
  readonly observe: ObserveRequest;
}

/** How the tensors of a model are shaped, and what they say where the request does not. */
export interface GenerationForm {
  /** Tensors have a batch dimension, of 1, besides. */
  isBatched: boolean;
  /** output_ids are the generated tokens alone, unless the request says otherwise. */
  excludesInput: boolean;
  /** An end_id that is the first of the model's own means all of them, and so does none. */
  endsByItself: boolean;
}

/** A request, read as far as its configuration goes. */
interface Asked {
  name: string;
  request: InferRequest;
  given: GivenInputs;
  on: InferListener;
}

/** Requests for tensors of one model, which they share with those of all other protocols. */
export class Generations {
  readonly #find: () => Generating;
  readonly #form: GenerationForm;
  readonly #running = new RunningIds();

  /** @param find the model as it is now @throws InferError where there is none */
  constructor(find: () => Generating, form: GenerationForm) {
    this.#find = find;
    this.#form = form;
  }

  /**
   * Answers a request whose tensors fit the configuration. @param name of the model, for refusals
   * @param onOver called when it is over, before the listener is notified @throws InferError for what is
   * refused at once
   */
  infer(
    name: string,
    request: InferRequest,
    inputs: readonly InferTensor[],
    on: InferListener,
    onOver: (error: InferError | null) => void,
  ): void {
    const asked = { name, request, given: new GivenInputs(inputs), on };
    const { terms, takesOne } = request;
    if (asked.given.is('stop')) {
      this.#stop(asked);
      return;
    }
    if (asked.given.is('streaming') && takesOne) throw streamsNot(asked);
    const generating = this.#find();
    const model = modelOf(generating, asked);
    checkEngine(generating, asked);
    let run: GenerationRun | null = null;
    let isStopped = false;
    const stop = () => {
      isStopped = true;
      run?.stop();
    };
    const forget = this.#running.add(callerOf(request), request.id, stop);
    const unheard = terms?.stop === undefined ? () => {} : onAbort(terms.stop, stop);
    const over = (error: unknown) => {
      forget();
      unheard();
      const told = error === null ? null : generationError(error, asked.given);
      onOver(told);
      if (told !== null) on.fail(told);
    };
    this.#read(asked, generating, model)
      .then(async (generation) => {
        const admission = await terms?.admit?.(costOf(generation), terms.tally);
        try {
          const tally = admission?.tally ?? terms?.tally;
          const seen = await seenRequest(
            model,
            generation.request,
            terms && termFields(terms, generation.request),
          );
          run = this.#runOf(asked, generating, model, { ...generation, request: seen }, tally, over);
          if (isStopped) run.stop();
          run.begin();
        } catch (error) {
          admission?.cancel();
          throw error;
        }
      })
      .catch(over);
  }

  #read({ given, request }: Asked, generating: Generating, model: TextModel): Promise<AskedGeneration> {
    const { adapters, maxLogProbs } = generating;
    const { excludesInput, endsByItself } = this.#form;
    const { signal, terms } = request;
    const hold = terms && ((bytes: number) => terms.hold(bytes));
    const caller = callerOf(request);
    return readGeneration(given, {
      model,
      adapters,
      maxLogProbs,
      excludesInput,
      endsByItself,
      caller,
      signal,
      hold,
    });
  }

  #runOf(
    { request: { id: requestId, terms, trace, signal, outputs: named }, on }: Asked,
    { observe, observedName: name }: Generating,
    model: TextModel,
    generation: Generation,
    tally: AnswerTally | undefined,
    onOver: (error: unknown) => void,
  ): GenerationRun {
    const { request, count } = generation;
    terms?.hold(answerMemory(model, request, count));
    const limited = { ...generation, request: { ...request, ...(terms && termFields(terms, request)) } };
    const wanted = wantedOutputs(named, generation);
    const outputs = new GenerationOutputs(wanted, limited, model.vocabSize, this.#form.isBatched);
    return new GenerationRun({
      model,
      generation: limited,
      outputs,
      name,
      observe,
      terms,
      tally,
      requestId,
      trace,
      signal,
      on,
      onOver,
    });
  }

  /** Ends the requests of the same id with what they have. @throws InferError where it has no id */
  #stop({ request, given, on }: Asked): void {
    const { id, outputs } = request;
    if (id === '') throw new InferError('Trying to stop a request but request ID is not provided', 'invalid');
    this.#running.stop(callerOf(request), id);
    const told = stoppedOutputs(outputs, given.has('input_ids'), this.#form.isBatched);
    queueMicrotask(() => {
      on.response({ outputs: told });
      on.end();
    });
  }
}

/** Most tokens that a request can take. */
function costOf({ request: { promptTokens, maxTokens }, count }: AskedGeneration): AnswerCost {
  return { promptTokens: promptTokens.length, outputTokens: count * maxTokens, answers: count };
}

/** Name of the API key that asks; '': there are no keys. */
const callerOf = ({ terms, owner }: InferRequest) => terms?.caller ?? owner ?? '';

/** The model, or the same with the adapter that the parameter `lora_name` names. @throws InferError invalid, notFound */
function modelOf({ model, adapters }: Generating, { name, request }: Asked): TextModel {
  const { lora_name: adapterName } = request.parameters;
  if (adapterName === undefined) return model;
  if (typeof adapterName !== 'string') {
    throw new InferError(`parameter 'lora_name' of '${name}' should be a string`, 'invalid');
  }
  const adapter = adapters?.find(adapterName);
  if (adapter !== undefined) return adapter.model;
  throw new InferError(`model '${name}' has no LoRA adapter '${adapterName}'`, 'notFound');
}

/** @throws InferError where the request names another engine */
function checkEngine({ fingerprint, adapters }: Generating, { name, request }: Asked): void {
  const engine = request.terms?.engine;
  const base = fingerprint();
  if (engine === undefined || base === null) return;
  const { lora_name: adapterName } = request.parameters;
  const adapter = typeof adapterName === 'string' ? adapters?.find(adapterName) : undefined;
  const own = adapter === undefined ? base : fingerprintWithAdapter(base, adapter.digest);
  if (engine === own) return;
  throw new InferError(
    `There is no engine '${engine}' of the model ${name} (X-Skein-Engine): it has ${own}.`,
    'invalid',
  );
}

function streamsNot({ name, given }: Asked): InferError {
  return new InferError(
    `'${given.nameOf('streaming')}' is true, and this way of asking '${name}' has one response; generate_stream streams`,
    'invalid',
  );
}

/** Requests under way by the ids that their clients gave them, so that another request can end them. Clients of other API keys find none. */
class RunningIds {
  readonly #stops = new Map<string, Set<() => void>>();

  /**
   * Adds a request under way. @param id '': it has none, and is not found @param stop ends it with what it has
   * @returns takes it out
   */
  add(caller: string, id: string, stop: () => void): () => void {
    if (id === '') return () => {};
    const key = keyOf(caller, id);
    const stops = this.#stops.get(key) ?? new Set();
    this.#stops.set(key, stops.add(stop));
    return () => {
      stops.delete(stop);
      if (stops.size === 0) this.#stops.delete(key);
    };
  }

  /** Ends all requests of this id. */
  stop(caller: string, id: string): void {
    for (const stop of [...(this.#stops.get(keyOf(caller, id)) ?? [])]) stop();
  }

  get size(): number {
    return this.#stops.size;
  }
}

/** No name of a key holds a null byte. */
const keyOf = (caller: string, id: string) => `${caller}\0${id}`;
