import { onAbort } from '../../base/on-abort.js';
import {
  bytesOf,
  MAX_ANSWER_BYTES,
  MAX_ANSWERS,
  MAX_ANSWERS_TEXT,
} from '../../callbacks/infer/answer-limits.js';
import { InferError } from '../../callbacks/infer/infer-error.js';
import type { ModelCall, ModelCallResponse } from '../../callbacks/infer/instance-messages.js';
import type { TraceSpan } from '../../callbacks/infer/trace-span.js';
import type { InferModel } from './infer-model.js';

/**
 * Answers what the code of a model asks of another one.
 * @param caller number of the batch whose code asks @param signal aborted when that batch is over: the answer
 * is not awaited then
 * @param trace below which the call is recorded; undefined: it is not
 */
export type OnCall = (
  call: ModelCall,
  caller: number,
  signal: AbortSignal,
  trace?: TraceSpan,
) => Promise<readonly ModelCallResponse[]>;

/**
 * A request of a model's code, answered as a client's would be: with the first answer, or where it asks for them with all. What a decoupled
 * model would answer beyond that is cancelled. Rejects with the model's error, or where there are more answers than may be given.
 *
 * @param caller, signal and trace as of OnCall
 */
export function answerCall(
  model: Pick<InferModel, 'infer' | 'config'>,
  { model: name, inputs, outputs, parameters, sequence, decoupled }: ModelCall,
  caller: number,
  signal: AbortSignal,
  trace?: TraceSpan,
): Promise<readonly ModelCallResponse[]> {
  const cancelled = new AbortController();
  const release = onAbort(signal, () => cancelled.abort());
  const answer = new Promise<readonly ModelCallResponse[]>((resolve, reject) => {
    const isOneEnough = !decoupled && model.config.model_transaction_policy.decoupled;
    const responses: ModelCallResponse[] = [];
    let bytes = 0;
    const request = {
      id: '',
      inputs,
      outputs,
      parameters,
      sequence,
      priority: 0,
      timeoutUs: 0,
      caller,
      signal: cancelled.signal,
      ...(trace && { trace }),
    };
    signal.throwIfAborted();
    model.infer(request, {
      response: ({ outputs: given, parameters: told }) => {
        if (cancelled.signal.aborted) return;
        responses.push({ outputs: given, parameters: told ?? null });
        bytes += bytesOf(given, told);
        const isTooMuch = decoupled && (responses.length > MAX_ANSWERS || bytes > MAX_ANSWER_BYTES);
        if (!isTooMuch && !isOneEnough) return;
        if (isTooMuch) reject(tooMany(name));
        else resolve(responses);
        cancelled.abort();
      },
      end: () => resolve(responses),
      fail: reject,
    });
  });
  return answer.finally(release);
}

function tooMany(name: string): InferError {
  return new InferError(
    `the model '${name}' gives more than ${MAX_ANSWERS_TEXT}, which is what one call may be given`,
    'invalid',
  );
}
