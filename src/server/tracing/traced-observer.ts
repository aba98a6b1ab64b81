import type { ObserveRequest, RequestObserver } from '../../serving/request-observer.js';
import { TextTrace } from '../../serving/texts/text-trace.js';
import type { Metrics } from '../metrics/metrics.js';

/** Follows requests for the metrics, and those that are traced for their traces too. */
export function traced(metrics: Pick<Metrics, 'observe'>): ObserveRequest {
  return (request) => {
    const counting = metrics.observe(request);
    const { traced: about, model, promptTokens, maxTokens } = request;
    const trace = TextTrace.begin(about?.parent, { ...about!, model, promptTokens, maxTokens });
    return trace === null ? counting : both(counting, trace);
  };
}

function both(one: RequestObserver, other: RequestObserver): RequestObserver {
  return {
    onCachedTokens: (count) => {
      one.onCachedTokens(count);
      other.onCachedTokens(count);
    },
    onTokens: (count) => {
      one.onTokens(count);
      other.onTokens(count);
    },
    onForgotten: (count) => {
      one.onForgotten(count);
      other.onForgotten(count);
    },
    onEnd: (reason, timing) => {
      one.onEnd(reason, timing);
      other.onEnd(reason, timing);
    },
  };
}
