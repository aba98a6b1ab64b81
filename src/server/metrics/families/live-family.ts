import { Counter, Gauge, type Registry } from 'prom-client';

/** A metric whose numbers are kept elsewhere: its series are made each time it is read. */
export interface LiveFamily<Label extends string> {
  name: string;
  help: string;
  labelNames?: readonly Label[];
  /** Its series, as they are when the metric is read. */
  read: () => Iterable<readonly [labels: Partial<Record<Label, string>>, value: number]>;
}

export function liveCounter<Label extends string>(
  registry: Registry,
  { read, ...family }: LiveFamily<Label>,
): void {
  new Counter({
    ...family,
    registers: [registry],
    collect() {
      this.reset();
      for (const [labels, value] of read()) this.inc(labels, value);
    },
  });
}

export function liveGauge<Label extends string>(
  registry: Registry,
  { read, ...family }: LiveFamily<Label>,
): void {
  new Gauge({
    ...family,
    registers: [registry],
    collect() {
      this.reset();
      for (const [labels, value] of read()) this.set(labels, value);
    },
  });
}
