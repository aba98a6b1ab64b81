import type { Admission, Admit, AnswerTally } from '../../../callbacks/infer/answer-tally.js';
import { HostClosedError, QueueFullError, RequestError } from '../../../callbacks/token-request.js';
import { type Embeddings, type EmbedOptions, embed, type OnAccepted } from '../../encoding/embed.js';
import type { EmbeddingInput, PictureLoading } from '../../encoding/embed-pictures.js';
import type { ObserveRequest, RequestObserver } from '../../serving/request-observer.js';
import type { ServedEncoder } from '../../serving/served-model.js';
import { ApiError, clientLeft } from '../web/errors.js';

/** Observers of a request. */
export interface Followed {
  observe: ObserveRequest;
  tally: AnswerTally | undefined;
  admit: Admit | undefined;
}

/** Embeds inputs, and reports the request to its observers. */
export function embedObserved(
  model: ServedEncoder,
  input: readonly EmbeddingInput[],
  options: EmbedOptions & { signal: AbortSignal },
  followed: Followed,
  loading?: PictureLoading,
): Promise<Embeddings> {
  return observed(model, followed, options.signal, (onAccepted) =>
    embed(model, input, options, onAccepted, loading),
  );
}

/** Runs a request of an encoder, and reports its end to its observers. */
export async function observed<T>(
  model: ServedEncoder,
  { observe, tally, admit }: Followed,
  signal: AbortSignal,
  run: (onAccepted: OnAccepted) => Promise<T>,
): Promise<T> {
  const observers: RequestObserver[] = [];
  let admission: Admission | undefined;
  try {
    const result = await run(async (promptTokens) => {
      admission = await admit?.({ promptTokens, outputTokens: 0, answers: 1 }, tally);
      const followed = { promptTokens, maxTokens: 0, tally: admission?.tally ?? tally };
      observers.push(observe({ model: model.id, ...followed }));
    });
    for (const observer of observers) observer.onEnd('stop');
    return result;
  } catch (error) {
    if (error instanceof QueueFullError || error instanceof HostClosedError) admission?.cancel();
    for (const observer of observers) observer.onEnd(signal.aborted ? 'abort' : 'error');
    if (signal.aborted) throw clientLeft();
    if (error instanceof RequestError && error.isInvalid) throw new ApiError(400, error.message);
    throw error;
  }
}
