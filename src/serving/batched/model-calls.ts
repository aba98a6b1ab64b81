import { cutText } from '../../../base/error-text.js';
import type { InstanceMessage, ModelCallResponse } from '../../../callbacks/infer/instance-messages.js';
import { LONGEST_MESSAGE } from '../../../callbacks/infer/request-limits.js';
import { sentTensors } from '../../../callbacks/infer/sent-tensors.js';
import type { OnCall } from '../answer-call.js';
import type { GivenBatch } from './given-batches.js';
import type { ModelHost, ModelInstance } from './model-host.js';
import type { ModelInstances } from './model-instances.js';

/** Answers what the code of a model's batches asks of other models; an instance that waits for an answer gives its turn back meanwhile. */
export class ModelCalls {
  readonly #host: ModelHost;
  readonly #instances: ModelInstances;
  readonly #onCall: OnCall;

  constructor(host: ModelHost, instances: ModelInstances, onCall: OnCall) {
    this.#host = host;
    this.#instances = instances;
    this.#onCall = onCall;
  }

  /** @param given the batch whose code asks; undefined: that one is over */
  async answer(
    { call, asked }: Extract<InstanceMessage, { type: 'call' }>,
    given: GivenBatch | undefined,
    instance: ModelInstance,
  ): Promise<void> {
    const { restarts } = instance;
    // A restarted worker numbers its calls from the start: they are not those of the one before.
    const answer = (responses: readonly ModelCallResponse[] | null, error: string | null) => {
      if (restarts === instance.restarts) instance.send({ type: 'called', call, responses, error });
    };
    if (given === undefined) {
      answer(null, 'other models can be asked in execute, until its batch is done');
      return;
    }
    given.calls ??= new AbortController();
    const { signal } = given.calls;
    const release = instance.hold();
    const turnIsBack = this.#instances.waitForCall(this.#host.indexOf(instance));
    try {
      const trace = given.trace?.parentOf(asked.request);
      const ask = async () => this.#onCall(asked, given.number, signal, trace);
      const responses = await ask().finally(turnIsBack);
      answer(
        responses.map((one) => ({ ...one, outputs: sentTensors(one.outputs) })),
        null,
      );
    } catch (error) {
      answer(null, cutText((error as Error).message, LONGEST_MESSAGE));
    } finally {
      release();
      this.#host.wake();
    }
  }
}
