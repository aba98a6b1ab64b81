import { describe, expect, it } from 'vitest';
import { Arrivals } from '../../../../../src/server/kserve/websocket/arrivals.js';

/** Bytes besides the content that a read takes. */
const READ = 256;

describe('what has come of a message', () => {
  it('is counted until it is whole', () => {
    const arrivals = new Arrivals();
    expect(arrivals.held).toBe(0);
    arrivals.read(1000);
    arrivals.read(500);
    expect(arrivals.held).toBe(1500 + 2 * READ);
    // 8 bytes of header, since it has more than 125.
    arrivals.frame(1492);
    expect(arrivals.held).toBe(0);
    expect(arrivals.ageMs).toBe(0);
  });

  it('is what is left of the latest read, where others came in front of it', () => {
    const arrivals = new Arrivals();
    arrivals.read(3 * 16 + 7);
    for (let i = 0; i < 3; i++) arrivals.frame(10);
    expect(arrivals.held).toBe(7 + READ);
    arrivals.read(9);
    expect(arrivals.ageMs).toBeGreaterThanOrEqual(0);
    arrivals.frame(10);
    expect(arrivals.held).toBe(0);
  });

  it('is never too little by fragments and pings between them, nor more than the latest read behind them', () => {
    const arrivals = new Arrivals();
    // Two fragments of 5 bytes and a ping of 4: three headers.
    arrivals.read(11 + 10 + 11);
    arrivals.control(4);
    expect(arrivals.held).toBe(22 + READ);
    arrivals.frame(10);
    expect(arrivals.held).toBe(6 + READ);
    arrivals.read(10);
    arrivals.frame(4);
    expect(arrivals.held).toBe(6 + READ);
  });
});
