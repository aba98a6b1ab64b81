import { describe, expect, it } from 'vitest';
import { packMessage, unpackMessage, type WorkItem } from '../../../cluster/nats/messages.js';
import { readTrace } from '../../../cluster/nats/trace-context.js';

const PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

describe('the trace of a work item', () => {
  it.each<[unknown]>([
    [undefined],
    [7],
    [{}],
    [''],
    ['00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331'],
    [`${PARENT}-more`],
    [PARENT.replace('00-', 'ff-')],
    [PARENT.toUpperCase()],
    [`00-${'0'.repeat(32)}-b7ad6b7169203331-01`],
    [`00-0af7651916cd43dd8448eb211c80319c-${'0'.repeat(16)}-01`],
    ['x'.repeat(1e6)],
  ])('is none where a broken gateway sends %s, and the request is taken all the same', (traceparent) => {
    expect(readTrace({ traceparent, tracestate: 'a=b' })).toBeNull();
    const item = { kind: 'work', gateway: 'g', id: 'g-1', attempt: 1, known: [], ended: [], request: {} };
    const sent = { ...item, ...(traceparent === undefined ? {} : { traceparent }) } as unknown as WorkItem;
    expect(unpackMessage(packMessage(sent), 'work')).toMatchObject(item);
  });

  it.each<[unknown]>([[7], [''], ['x'.repeat(513)], ['a=\n']])(
    'is without a state that is none: %s',
    (tracestate) => {
      expect(readTrace({ traceparent: PARENT, tracestate })).toEqual({ traceparent: PARENT });
    },
  );

  it('is as it was sent', () => {
    const trace = { traceparent: PARENT, tracestate: 'a=b,c=d' };
    expect(readTrace(trace)).toEqual(trace);
  });
});
