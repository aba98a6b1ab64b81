const WINDOW = '$__rate_interval';

/** PromQL over the series that a dashboard's variables choose. `by` names labels with commas; none: all together. */
export class Selection {
  readonly #matchers: string;

  constructor(matchers: string) {
    this.#matchers = matchers;
  }

  series(name: string, more = ''): string {
    return `${name}{${this.#matchers}${more === '' ? '' : `, ${more}`}}`;
  }

  rate(name: string, more = '', window = WINDOW): string {
    return `rate(${this.series(name, more)}[${window}])`;
  }

  sumRate(name: string, { by = '', more = '', window = WINDOW } = {}): string {
    return `sum${grouped(by)}(${this.rate(name, more, window)})`;
  }

  /** An aggregation of what is now. */
  now(operator: string, name: string, { by = '', more = '' } = {}): string {
    return `${operator}${grouped(by)}(${this.series(name, more)})`;
  }

  /** A quotient of two rates, without series where the divisor is 0. */
  ratio(part: string, whole: string, { by = '', window = WINDOW } = {}): string {
    return positive(this.sumRate(part, { by, window }), this.sumRate(whole, { by, window }));
  }

  quantile(share: number, histogram: string, { by = '', window = WINDOW } = {}): string {
    const labels = by === '' ? 'le' : `le, ${by}`;
    return `histogram_quantile(${share}, sum by (${labels}) (${this.rate(`${histogram}_bucket`, '', window)}))`;
  }

  mean(histogram: string, by = ''): string {
    return this.ratio(`${histogram}_sum`, `${histogram}_count`, { by });
  }

  /** What a panel of a latency or a length shows. */
  spread(histogram: string): string[] {
    return [...[0.5, 0.95, 0.99].map((share) => this.quantile(share, histogram)), this.mean(histogram)];
  }
}

/** `matching`: how series of both sides are joined. */
export function positive(part: string, whole: string, matching = ''): string {
  return `${part} / ${matching === '' ? '' : `${matching} `}(${whole} > 0)`;
}

function grouped(by: string): string {
  return by === '' ? '' : ` by (${by}) `;
}
