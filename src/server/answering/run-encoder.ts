import type { AnswerTally } from '../../../callbacks/infer/answer-tally.js';
import { RequestError } from '../../../callbacks/token-request.js';
import { type Embeddings, type EmbedOptions, embed, type OnAccepted } from '../../encoding/embed.js';
import type { EncoderInput } from '../../encoding/encoder-codec.js';
import type { ObserveRequest, RequestObserver } from '../../serving/request-observer.js';
import type { ServedEncoder } from '../../serving/served-model.js';
import { ApiError, clientLeft } from '../web/errors.js';

/** Observers of a request. */
export interface Followed {
  observe: ObserveRequest;
  tally: AnswerTally | undefined;
}

/** Embeds inputs, and reports the request to its observers. */
export function embedObserved(
  model: ServedEncoder,
  input: readonly EncoderInput[],
  options: EmbedOptions & { signal: AbortSignal },
  followed: Followed,
): Promise<Embeddings> {
  return observed(model, followed, options.signal, (onAccepted) => embed(model, input, options, onAccepted));
}

/** Runs a request of an encoder, and reports its end to its observers. */
export async function observed<T>(
  model: ServedEncoder,
  { observe, tally }: Followed,
  signal: AbortSignal,
  run: (onAccepted: OnAccepted) => Promise<T>,
): Promise<T> {
  const observers: RequestObserver[] = [];
  try {
    const result = await run((promptTokens) => {
      observers.push(observe({ model: model.id, promptTokens, maxTokens: 0, tally }));
    });
    for (const observer of observers) observer.onEnd('stop');
    return result;
  } catch (error) {
    for (const observer of observers) observer.onEnd(signal.aborted ? 'abort' : 'error');
    if (signal.aborted) throw clientLeft();
    if (error instanceof RequestError && error.isInvalid) throw new ApiError(400, error.message);
    throw error;
  }
}
