import type { SchedulableRequest } from './types.js';

/**
 * Length of a chunk of `size` tokens after the `taken` ones that the request has in this iteration, so that
 * it cuts no span: it ends in front of the span or, where it begins with the span, has all of it, however
 * long that is.
 *
 *   prompt   a a a|b b b b b|a a a a      size 5 at 0: 3      size 2 at 3: 5      size 6 at 3: 6
 */
export function uncutLength(
  { contextPosition, wholeSpans }: Pick<SchedulableRequest, 'contextPosition' | 'wholeSpans'>,
  taken: number,
  size: number,
): number {
  if (wholeSpans === undefined) return size;
  const from = contextPosition + taken;
  // Where there is room for no token, the span that begins here may still be taken.
  const cut = wholeSpans.find(
    ({ start, end }) => (start < from + size || start === from) && end > from + size,
  );
  if (cut === undefined) return size;
  return cut.start > from ? cut.start - from : cut.end - from;
}
