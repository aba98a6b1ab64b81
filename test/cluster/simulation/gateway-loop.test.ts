import fc from 'fast-check';
import { expect, it } from 'vitest';
import { GatewayLoop } from '../../../cluster/simulation/gateway-loop.js';

it("a gateway's loop does one thing after another, beats among them", () => {
  const job = fc.record({ afterNs: fc.integer({ min: 0, max: 3e9 }), tokens: fc.option(fc.nat(50)) });
  let numLate = 0;
  fc.assert(
    fc.property(
      ...[fc.array(job, { maxLength: 30 }), fc.constantFrom(1, 4, 1000), fc.constantFrom(0, 0.4, 900)],
      (jobs, workers, messageMs) => {
        const loop = new GatewayLoop({ requestMs: 1.5, tokenMs: 20, messageMs }, workers);
        let [nowNs, freeNs, busyNs, beats] = [0, 0, 0, 0];
        const serve = (atNs: number, costMs: number) => {
          freeNs = Math.max(freeNs, atNs) + 1e6 * costMs;
          busyNs += 1e6 * costMs;
        };
        for (const { afterNs, tokens } of jobs) {
          nowNs += afterNs;
          for (; ((beats + 1) * 1e9) / workers <= nowNs; beats += 1)
            serve(((beats + 1) * 1e9) / workers, messageMs);
          serve(nowNs, tokens === null ? 1.5 : messageMs + 20 * tokens);
          expect(tokens === null ? loop.request(nowNs) : loop.message(nowNs, tokens)).toBe(freeNs);
          if (freeNs > nowNs + 5e9) numLate += 1;
        }
        expect(loop.busyNs).toBe(busyNs);
      },
    ),
    { seed: 54, numRuns: 60 },
  );
  expect(numLate).toBeGreaterThan(20);
});
