import type { ObserveRequest, RequestObserver } from '../../serving/request-observer.js';
import { TextTrace } from '../../serving/texts/text-trace.js';
import type { Metrics } from '../metrics/metrics.js';

/** Follows requests for the metrics, for the access log of their exchange, and those that are traced for their traces. */
export function followRequests(metrics: Pick<Metrics, 'observe'>): ObserveRequest {
  return (request) => {
    const { tally, traced: about, model, promptTokens, maxTokens, sharesPrompt } = request;
    const followers: RequestObserver[] = [metrics.observe(request)];
    if (tally !== undefined) followers.push(tally.begin({ model, promptTokens, sharesPrompt }));
    const trace = TextTrace.begin(about?.parent, { ...about!, model, promptTokens, maxTokens });
    if (trace !== null) followers.push(trace);
    return followers.length === 1 ? followers[0]! : all(followers);
  };
}

function all(observers: readonly RequestObserver[]): RequestObserver {
  return {
    onCachedTokens: (count) => {
      for (const one of observers) one.onCachedTokens(count);
    },
    onTokens: (count) => {
      for (const one of observers) one.onTokens(count);
    },
    onForgotten: (count) => {
      for (const one of observers) one.onForgotten(count);
    },
    onEnd: (reason, timing) => {
      for (const one of observers) one.onEnd(reason, timing);
    },
  };
}
