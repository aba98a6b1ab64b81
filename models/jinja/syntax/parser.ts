import { ExpressionParser, isConstantName } from './expression-parser.js';
import type {
  BlockNode,
  CallBlockNode,
  Expression,
  ForNode,
  IfNode,
  MacroNode,
  NameNode,
  Signature,
  Statement,
} from './nodes.js';
import { TokenStream } from './token-stream.js';

/** Parses a template. @throws JinjaError of kind TemplateSyntaxError */
export function parse(source: string): Statement[] {
  return new Parser(new TokenStream(source)).parse();
}

class Parser {
  readonly #stream: TokenStream;
  readonly #expressions: ExpressionParser;
  /** Tags that are open, the innermost last. */
  readonly #open: string[] = [];
  /** Tags that may end each of the open bodies. */
  readonly #ends: (readonly string[])[] = [];
  readonly #tags: Readonly<Record<string, () => Statement>> = {
    for: () => this.#for(),
    if: () => this.#if(),
    set: () => this.#set(),
    macro: () => this.#macro(),
    call: () => this.#call(),
    filter: () => this.#filter(),
    generation: () => this.#generation(),
    with: () => this.#with(),
    block: () => this.#block(),
    print: () => this.#print(),
    autoescape: () => this.#autoescape(),
    break: () => ({ type: 'Break', line: this.#stream.next().line }),
    continue: () => ({ type: 'Continue', line: this.#stream.next().line }),
    extends: () => this.#extends(),
    include: () => this.#include(),
    import: () => this.#import(),
    from: () => this.#from(),
  };

  constructor(stream: TokenStream) {
    this.#stream = stream;
    this.#expressions = new ExpressionParser(stream);
  }

  parse(): Statement[] {
    return this.#statements([]);
  }

  /** Statements up to a tag that ends them, which stays the current token; without such tags, up to the end. */
  #statements(ends: readonly string[]): Statement[] {
    const body: Statement[] = [];
    let parts: (string | Expression)[] = [];
    const flush = () => {
      if (parts.length > 0) body.push({ type: 'Output', parts });
      parts = [];
    };
    this.#ends.push(ends);
    while (!this.#stream.is('eof')) {
      const token = this.#stream.next();
      if (token.type === 'data') parts.push(token.text);
      else if (token.type === 'variable_begin') {
        parts.push(this.#expressions.tuple());
        this.#stream.expect('variable_end');
      } else {
        flush();
        if (this.#stream.is('name') && ends.includes(this.#stream.current.text)) break;
        body.push(this.#stream.nested(() => this.#statement()));
        this.#stream.expect('block_end');
      }
    }
    flush();
    if (ends.length > 0 && this.#stream.is('eof')) this.#failUnended(null);
    this.#ends.pop();
    return body;
  }

  #statement(): Statement {
    if (!this.#stream.is('name')) this.#stream.fail('tag name expected');
    const tag = this.#stream.current.text;
    const parseTag = Object.hasOwn(this.#tags, tag) ? this.#tags[tag] : undefined;
    if (parseTag === undefined) this.#failUnended(tag);
    this.#open.push(tag);
    const statement = parseTag();
    this.#open.pop();
    return statement;
  }

  #failUnended(tag: string | null): never {
    const parts = [tag === null ? 'Unexpected end of template.' : `Encountered unknown tag '${tag}'.`];
    const ends = this.#ends.at(-1) ?? [];
    if (ends.length > 0) {
      const wanted = ends.map((end) => `'${end}'`).join(' or ');
      parts.push(`Jinja was looking for the following tags: ${wanted}.`);
    }
    const open = this.#open.at(-1);
    if (open !== undefined) parts.push(`The innermost block that needs to be closed is '${open}'.`);
    this.#stream.fail(parts.join(' '));
  }

  /** The body of a tag, up to a tag that ends it. */
  #body(...ends: string[]): Statement[] {
    this.#stream.skipIf('operator', ':');
    this.#stream.expect('block_end');
    return this.#statements(ends);
  }

  /** A body whose end is taken too. */
  #wholeBody(end: string): Statement[] {
    const body = this.#body(end);
    this.#stream.next();
    return body;
  }

  #target(endsAt?: string, withNamespace = false): Expression {
    const target = this.#expressions.tuple({
      isTarget: true,
      withNamespace,
      ...(endsAt === undefined ? {} : { endsAt }),
    });
    return this.#assignable(target);
  }

  #assignable(target: Expression): Expression {
    if (target.type === 'Name') return { ...target, use: 'store' };
    if (target.type === 'NamespaceTarget') return target;
    if (target.type === 'Tuple')
      return { type: 'Tuple', items: target.items.map((item) => this.#assignable(item)) };
    const word = target.type === 'Constant' ? 'const' : target.type.toLowerCase();
    this.#stream.fail(`can't assign to '${word}'`);
  }

  #nameTarget(use: NameNode['use'] = 'store'): NameNode {
    const name = this.#stream.expect('name').text;
    if (isConstantName(name)) this.#stream.fail("can't assign to 'name'");
    return { type: 'Name', name, use };
  }

  #set(): Statement {
    this.#stream.next();
    const target = this.#target(undefined, true);
    if (this.#stream.skipIf('operator', '=')) {
      return { type: 'Set', target, value: this.#expressions.tuple() };
    }
    const filter = this.#expressions.filter(null);
    return { type: 'SetBlock', target, filter, body: this.#wholeBody('endset') };
  }

  #for(): ForNode {
    this.#stream.next();
    const target = this.#target('in');
    this.#stream.expect('name', 'in');
    const iterable = this.#expressions.tuple({ withCondition: false, endsAt: 'recursive' });
    const test = this.#stream.skipIf('name', 'if') ? this.#expressions.expression() : null;
    const isRecursive = this.#stream.skipIf('name', 'recursive');
    const body = this.#body('endfor', 'else');
    const otherwise = this.#stream.next().text === 'else' ? this.#wholeBody('endfor') : [];
    return { type: 'For', target, iterable, test, body, otherwise, isRecursive };
  }

  #if(): IfNode {
    const first = this.#branch();
    while (true) {
      const tag = this.#stream.next().text;
      if (tag === 'elif') {
        first.others.push(this.#branch());
        continue;
      }
      if (tag === 'else') first.otherwise = this.#wholeBody('endif');
      return first;
    }
  }

  /** A condition with its body; `if` is still there, `elif` is taken. */
  #branch(): IfNode {
    this.#stream.skipIf('name', 'if');
    const test = this.#expressions.tuple({ withCondition: false });
    return { type: 'If', test, body: this.#body('elif', 'else', 'endif'), others: [], otherwise: [] };
  }

  #signature(): Signature {
    const parameters: NameNode[] = [];
    const defaults: Expression[] = [];
    this.#stream.expect('operator', '(');
    while (!this.#stream.isOperator(')')) {
      if (parameters.length > 0) this.#stream.expect('operator', ',');
      const parameter = this.#nameTarget('param');
      if (this.#stream.skipIf('operator', '=')) defaults.push(this.#expressions.expression());
      else if (defaults.length > 0) this.#stream.fail('non-default argument follows default argument');
      parameters.push(parameter);
    }
    this.#stream.expect('operator', ')');
    return { parameters, defaults };
  }

  #macro(): MacroNode {
    const { line } = this.#stream.next();
    const { name } = this.#nameTarget();
    return { type: 'Macro', name, ...this.#signature(), body: this.#wholeBody('endmacro'), line };
  }

  #call(): CallBlockNode {
    const { line } = this.#stream.next();
    const signature = this.#stream.isOperator('(') ? this.#signature() : { parameters: [], defaults: [] };
    const call = this.#expressions.expression();
    if (call.type !== 'Call') this.#stream.fail('expected call', line);
    return { type: 'CallBlock', call, ...signature, body: this.#wholeBody('endcall'), line };
  }

  /** The block with which training marks what the model writes: its text stays. */
  #generation(): CallBlockNode {
    const { line } = this.#stream.next();
    const body = this.#wholeBody('endgeneration');
    return { type: 'CallBlock', call: null, parameters: [], defaults: [], body, line };
  }

  #filter(): Statement {
    this.#stream.next();
    const filter = this.#expressions.filter(null, true)!;
    return { type: 'FilterBlock', filter, body: this.#wholeBody('endfilter') };
  }

  #with(): Statement {
    this.#stream.next();
    const targets: Expression[] = [];
    const values: Expression[] = [];
    while (!this.#stream.is('block_end')) {
      if (targets.length > 0) this.#stream.expect('operator', ',');
      targets.push(asParameters(this.#target()));
      this.#stream.expect('operator', '=');
      values.push(this.#expressions.expression());
    }
    return { type: 'With', targets, values, body: this.#wholeBody('endwith') };
  }

  #block(): BlockNode {
    this.#stream.next();
    const name = this.#stream.expect('name').text;
    const isScoped = this.#stream.skipIf('name', 'scoped');
    const isRequired = this.#stream.skipIf('name', 'required');
    const body = this.#wholeBody('endblock');
    const isEmpty = body.every(
      (one) =>
        one.type === 'Output' && one.parts.every((part) => typeof part === 'string' && part.trim() === ''),
    );
    if (isRequired && !isEmpty) {
      this.#stream.fail('Required blocks can only contain comments or whitespace');
    }
    this.#stream.skipIf('name', name);
    return { type: 'Block', name, body, isScoped, isRequired };
  }

  #print(): Statement {
    this.#stream.next();
    const parts: Expression[] = [];
    while (!this.#stream.is('block_end')) {
      if (parts.length > 0) this.#stream.expect('operator', ',');
      parts.push(this.#expressions.expression());
    }
    return { type: 'Output', parts };
  }

  /** Prompts are no HTML: only escaping that is off is available. */
  #autoescape(): Statement {
    this.#stream.next();
    const value = this.#expressions.expression();
    if (value.type !== 'Constant' || value.value !== false) {
      this.#stream.fail('autoescape is available with false alone');
    }
    return { type: 'Scope', body: this.#wholeBody('endautoescape') };
  }

  #extends(): Statement {
    const tag = this.#stream.next().text;
    return { type: 'Load', tag, template: this.#expressions.expression(), names: [] };
  }

  #include(): Statement {
    const tag = this.#stream.next().text;
    const template = this.#expressions.expression();
    if (this.#stream.areNames('ignore', 'missing')) this.#skipTwo();
    this.#skipContext();
    return { type: 'Load', tag, template, names: [] };
  }

  #import(): Statement {
    const tag = this.#stream.next().text;
    const template = this.#expressions.expression();
    this.#stream.expect('name', 'as');
    const { name } = this.#nameTarget();
    this.#skipContext();
    return { type: 'Load', tag, template, names: [name] };
  }

  #from(): Statement {
    const tag = this.#stream.next().text;
    const template = this.#expressions.expression();
    this.#stream.expect('name', 'import');
    const names: string[] = [];
    do {
      if (this.#skipContext()) break;
      const { name } = this.#nameTarget();
      names.push(this.#stream.skipIf('name', 'as') ? this.#nameTarget().name : name);
    } while (!this.#skipContext() && this.#stream.skipIf('operator', ','));
    return { type: 'Load', tag, template, names };
  }

  #skipTwo(): void {
    this.#stream.next();
    this.#stream.next();
  }

  #skipContext(): boolean {
    const isThere = ['with', 'without'].some((word) => this.#stream.areNames(word, 'context'));
    if (isThere) this.#skipTwo();
    return isThere;
  }
}

function asParameters(target: Expression): Expression {
  if (target.type === 'Name') return { ...target, use: 'param' };
  return target.type === 'Tuple' ? { type: 'Tuple', items: target.items.map(asParameters) } : target;
}
