import { readFloat } from '../values/read-number.js';
import { Float } from '../values/value.js';
import type { BinaryOperator, CallArguments, ComparisonOperator, Expression, FilterNode } from './nodes.js';
import type { TokenStream } from './token-stream.js';

const CONSTANTS = new Map<string, boolean | null>([
  ...(['true', 'True'] as const).map((name): [string, boolean] => [name, true]),
  ...(['false', 'False'] as const).map((name): [string, boolean] => [name, false]),
  ['none', null],
  ['None', null],
]);

export const isConstantName = (name: string) => CONSTANTS.has(name);

/** Words that end a test without brackets. */
const AFTER_TEST = new Set(['else', 'or', 'and']);

/** Options of a list of expressions that commas may make a tuple. */
interface TupleOptions {
  /** Only names and literals, as targets are. */
  isTarget?: boolean;
  /** A target may be an attribute of a namespace. */
  withNamespace?: boolean;
  /** `a if b else c` may stand there; default true. */
  withCondition?: boolean;
  /** A word that ends it. */
  endsAt?: string;
  /** An empty pair of brackets is a tuple. */
  mayBeEmpty?: boolean;
}

/** Parses expressions with Jinja2's precedence, from `if` down to attributes. */
export class ExpressionParser {
  readonly #stream: TokenStream;

  constructor(stream: TokenStream) {
    this.#stream = stream;
  }

  expression(withCondition = true): Expression {
    return this.#stream.nested(() => (withCondition ? this.#condition() : this.#or()));
  }

  #condition(): Expression {
    const { line } = this.#stream.current;
    let expression = this.#or();
    while (this.#stream.skipIf('name', 'if')) {
      const test = this.#or();
      const otherwise = this.#stream.skipIf('name', 'else') ? this.expression() : null;
      expression = { type: 'Condition', test, whenTrue: expression, otherwise, line };
    }
    return expression;
  }

  #or(): Expression {
    let left = this.#and();
    while (this.#stream.skipIf('name', 'or')) {
      left = { type: 'Logic', operator: 'or', left, right: this.#and() };
    }
    return left;
  }

  #and(): Expression {
    let left = this.#not();
    while (this.#stream.skipIf('name', 'and')) {
      left = { type: 'Logic', operator: 'and', left, right: this.#not() };
    }
    return left;
  }

  #not(): Expression {
    if (!this.#stream.skipIf('name', 'not')) return this.#comparison();
    return { type: 'Not', operand: this.#stream.nested(() => this.#not()) };
  }

  #comparison(): Expression {
    const first = this.#sum();
    const others: { operator: ComparisonOperator; value: Expression }[] = [];
    for (
      let operator = this.#comparisonOperator();
      operator !== null;
      operator = this.#comparisonOperator()
    ) {
      others.push({ operator, value: this.#sum() });
    }
    return others.length === 0 ? first : { type: 'Comparison', first, others };
  }

  #comparisonOperator(): ComparisonOperator | null {
    const { type, text } = this.#stream.current;
    if (type === 'operator' && ['==', '!=', '<', '<=', '>', '>='].includes(text)) {
      return this.#stream.next().text as ComparisonOperator;
    }
    if (this.#stream.skipIf('name', 'in')) return 'in';
    if (!this.#stream.areNames('not', 'in')) return null;
    this.#stream.next();
    this.#stream.next();
    return 'not in';
  }

  #sum(): Expression {
    return this.#binary(['+', '-'], () => this.#concat());
  }

  #concat(): Expression {
    const items = [this.#product()];
    while (this.#stream.skipIf('operator', '~')) items.push(this.#product());
    return items.length === 1 ? items[0]! : { type: 'Concat', items };
  }

  #product(): Expression {
    return this.#binary(['*', '/', '//', '%'], () => this.#power());
  }

  #power(): Expression {
    return this.#binary(['**'], () => this.#unary());
  }

  #binary(operators: readonly string[], operand: () => Expression): Expression {
    let left = operand();
    while (this.#stream.is('operator') && operators.includes(this.#stream.current.text)) {
      const operator = this.#stream.next().text as BinaryOperator;
      left = { type: 'Binary', operator, left, right: operand() };
    }
    return left;
  }

  #unary(withFilters = true): Expression {
    const { type, text } = this.#stream.current;
    let node: Expression;
    if (type === 'operator' && (text === '-' || text === '+')) {
      this.#stream.next();
      node = { type: 'Sign', operator: text, operand: this.#stream.nested(() => this.#unary(false)) };
    } else {
      node = this.primary();
    }
    node = this.#postfix(node);
    return withFilters ? this.#filtersAndTests(node) : node;
  }

  /** A name or a literal. @param asTarget a name may have an attribute, of a namespace */
  primary(asTarget = false): Expression {
    const token = this.#stream.current;
    switch (token.type) {
      case 'name':
        return this.#name(asTarget);
      case 'string': {
        let value = '';
        while (this.#stream.is('string')) value += this.#stream.next().text;
        return { type: 'Constant', value };
      }
      case 'integer':
        return { type: 'Constant', value: this.#stream.next().number };
      case 'float':
        return { type: 'Constant', value: new Float(readFloat(this.#stream.next().text)!) };
    }
    if (token.type === 'operator' && token.text === '(') return this.#brackets();
    if (token.type === 'operator' && token.text === '[') return this.#list();
    if (token.type === 'operator' && token.text === '{') return this.#dict();
    this.#stream.fail(`unexpected '${this.#stream.described()}'`);
  }

  #name(asTarget: boolean): Expression {
    const name = this.#stream.next().text;
    const constant = CONSTANTS.get(name);
    if (constant !== undefined) return { type: 'Constant', value: constant };
    if (!asTarget || !this.#stream.skipIf('operator', '.')) return { type: 'Name', name, use: 'load' };
    return { type: 'NamespaceTarget', name, attribute: this.#stream.expect('name').text };
  }

  #brackets(): Expression {
    this.#stream.next();
    const inner = this.tuple({ mayBeEmpty: true });
    this.#stream.expect('operator', ')');
    return inner;
  }

  /** Expressions between commas, which make a tuple; one alone is itself. */
  tuple({
    isTarget,
    withNamespace,
    withCondition = true,
    endsAt,
    mayBeEmpty,
  }: TupleOptions = {}): Expression {
    const items: Expression[] = [];
    let isTuple = false;
    while (true) {
      if (items.length > 0) this.#stream.expect('operator', ',');
      if (this.#endsTuple(endsAt)) break;
      items.push(
        isTarget ? this.#stream.nested(() => this.primary(withNamespace)) : this.expression(withCondition),
      );
      if (!this.#stream.isOperator(',')) break;
      isTuple = true;
    }
    if (isTuple || (items.length === 0 && mayBeEmpty)) return { type: 'Tuple', items };
    if (items.length === 0) this.#stream.fail(`Expected an expression, got '${this.#stream.described()}'`);
    return items[0]!;
  }

  #endsTuple(endsAt: string | undefined): boolean {
    const { type, text } = this.#stream.current;
    if (type === 'variable_end' || type === 'block_end') return true;
    return (type === 'operator' && text === ')') || (type === 'name' && text === endsAt);
  }

  #list(): Expression {
    this.#stream.next();
    const items: Expression[] = [];
    while (!this.#stream.isOperator(']')) {
      if (items.length > 0) this.#stream.expect('operator', ',');
      if (this.#stream.isOperator(']')) break;
      items.push(this.expression());
    }
    this.#stream.expect('operator', ']');
    return { type: 'List', items };
  }

  #dict(): Expression {
    this.#stream.next();
    const items: { key: Expression; value: Expression }[] = [];
    while (!this.#stream.isOperator('}')) {
      if (items.length > 0) this.#stream.expect('operator', ',');
      if (this.#stream.isOperator('}')) break;
      const key = this.expression();
      this.#stream.expect('operator', ':');
      items.push({ key, value: this.expression() });
    }
    this.#stream.expect('operator', '}');
    return { type: 'Dict', items };
  }

  #postfix(first: Expression): Expression {
    let node = first;
    while (true) {
      if (this.#stream.isOperator('.')) node = this.#attribute(node);
      else if (this.#stream.isOperator('[')) node = this.#subscript(node);
      else if (this.#stream.isOperator('(')) node = { type: 'Call', callee: node, ...this.#arguments() };
      else return node;
    }
  }

  #filtersAndTests(first: Expression): Expression {
    let node = first;
    while (true) {
      if (this.#stream.isOperator('|')) node = this.filter(node)!;
      else if (this.#stream.isName('is')) node = this.#test(node);
      else if (this.#stream.isOperator('(')) node = { type: 'Call', callee: node, ...this.#arguments() };
      else return node;
    }
  }

  #attribute(object: Expression): Expression {
    this.#stream.next();
    const token = this.#stream.next();
    if (token.type === 'name') return { type: 'Attribute', object, name: token.text };
    if (token.type !== 'integer') this.#stream.fail('expected name or number', token.line);
    return { type: 'Item', object, key: { type: 'Constant', value: token.number } };
  }

  #subscript(object: Expression): Expression {
    this.#stream.next();
    const keys: Expression[] = [];
    while (!this.#stream.isOperator(']')) {
      if (keys.length > 0) this.#stream.expect('operator', ',');
      keys.push(this.#subscriptKey());
    }
    this.#stream.expect('operator', ']');
    return { type: 'Item', object, key: keys.length === 1 ? keys[0]! : { type: 'Tuple', items: keys } };
  }

  #subscriptKey(): Expression {
    const start = this.#stream.isOperator(':') ? null : this.expression();
    if (!this.#stream.skipIf('operator', ':')) return start!;
    const stop = this.#endsSlicePart() ? null : this.expression();
    if (!this.#stream.skipIf('operator', ':')) return { type: 'Slice', start, stop, step: null };
    return { type: 'Slice', start, stop, step: this.#endsSlicePart() ? null : this.expression() };
  }

  #endsSlicePart(): boolean {
    return [':', ']', ','].some((operator) => this.#stream.isOperator(operator));
  }

  #arguments(): CallArguments {
    const { line } = this.#stream.expect('operator', '(');
    const found: CallArguments = { args: [], named: [], more: null, moreNamed: null };
    const ensure = (fits: boolean) => {
      if (!fits) this.#stream.fail('invalid syntax for function call expression', line);
    };
    let isFirst = true;
    while (!this.#stream.isOperator(')')) {
      if (!isFirst) {
        this.#stream.expect('operator', ',');
        if (this.#stream.isOperator(')')) break;
      }
      isFirst = false;
      this.#argument(found, ensure);
    }
    this.#stream.expect('operator', ')');
    return found;
  }

  #argument(found: CallArguments, ensure: (fits: boolean) => void): void {
    if (this.#stream.skipIf('operator', '*')) {
      ensure(found.more === null && found.moreNamed === null);
      found.more = this.expression();
    } else if (this.#stream.skipIf('operator', '**')) {
      ensure(found.moreNamed === null);
      found.moreNamed = this.expression();
    } else if (this.#stream.is('name') && this.#isAssignment()) {
      ensure(found.moreNamed === null);
      const name = this.#stream.next().text;
      this.#stream.next();
      found.named.push({ name, value: this.expression() });
    } else {
      ensure(found.more === null && found.moreNamed === null && found.named.length === 0);
      found.args.push(this.expression());
    }
  }

  #isAssignment(): boolean {
    const { type, text } = this.#stream.following;
    return type === 'operator' && text === '=';
  }

  /** Filters that follow an expression, or the first ones of a block. @param begins true where the first has no `|` */
  filter(operand: Expression | null, begins = false): FilterNode | null {
    let node = operand as FilterNode | null;
    let isFirst = begins;
    while (isFirst || this.#stream.skipIf('operator', '|')) {
      isFirst = false;
      const name = this.#dottedName();
      node = { type: 'Filter', operand: node, name, ...this.#optionalArguments() };
    }
    return node;
  }

  #dottedName(): string {
    let name = this.#stream.expect('name').text;
    while (this.#stream.skipIf('operator', '.')) name += `.${this.#stream.expect('name').text}`;
    return name;
  }

  #optionalArguments(): CallArguments {
    if (this.#stream.isOperator('(')) return this.#arguments();
    return { args: [], named: [], more: null, moreNamed: null };
  }

  #test(operand: Expression): Expression {
    this.#stream.next();
    const isNegated = this.#stream.skipIf('name', 'not');
    const name = this.#dottedName();
    const hasBrackets = this.#stream.isOperator('(');
    const given = this.#optionalArguments();
    if (!hasBrackets && this.#hasBareArgument()) {
      if (this.#stream.isName('is')) this.#stream.fail('You cannot chain multiple tests with is');
      given.args.push(this.#stream.nested(() => this.#postfix(this.primary())));
    }
    const test: Expression = { type: 'Test', operand, name, ...given };
    return isNegated ? { type: 'Not', operand: test } : test;
  }

  /** True where a test's argument follows without brackets. */
  #hasBareArgument(): boolean {
    const { type, text } = this.#stream.current;
    if (type === 'name') return !AFTER_TEST.has(text);
    if (type === 'operator') return text === '[' || text === '{';
    return type === 'string' || type === 'integer' || type === 'float';
  }
}
