/** The part of a request that the ageing rule reads: a higher number came later. */
export interface Arrived {
  readonly arrivalNumber: number;
}

/**
 * Moves the request at `place` of the list in front of all that came later. Requests before it that came earlier stay
 * before it, and so move too; everything else keeps its order.
 *
 *   arrival        1  .  7  3  9  5       5 has waited too long; 7 and 9 have higher priorities
 *   becomes        1  .  3  5  7  9       3 came before 5 and stood before it: it is not overtaken
 *
 * This ends starvation: without it, a request of low priority waits as long as others of higher priority keep coming.
 * Since only earlier arrivals ever pass later ones, requests of equal priority stay in order of arrival. And since the
 * earliest request has all others behind it once it has waited its time, each request ends, whatever comes.
 */
export function passLaterArrivals<R extends Arrived>(list: R[], place: number): void {
  const request = list[place]!;
  const cameLater = ({ arrivalNumber }: R) => arrivalNumber > request.arrivalNumber;
  const first = list.findIndex(cameLater);
  if (first < 0 || first > place) return;
  const passed = list.slice(first, place);
  const moved = passed.filter((other) => !cameLater(other));
  list.splice(first, passed.length + 1, ...moved, request, ...passed.filter(cameLater));
}
