// The transport of all Connect clients here: unary calls by fetch, streams over the mux.
import {
  create, fromJson, toJson, type DescMessage, type DescMethodStreaming, type DescMethodUnary, type JsonValue,
  type MessageInitShape, type MessageShape,
} from "@bufbuild/protobuf";
import {
  Code, ConnectError, createClient, type Client, type StreamResponse, type Transport,
  type UnaryResponse,
} from "@connectrpc/connect";
import { errorFromJson } from "@connectrpc/connect/protocol-connect";
import type { DescService } from "@bufbuild/protobuf";
import { lost, verify } from "./connection";
import { stream } from "./mux";
import * as session from "./session";

const reading = { ignoreUnknownFields: true };

async function failure(response: Response): Promise<ConnectError> {
  const fallback = new ConnectError(`the daemon answered with status ${response.status}`, Code.Unknown);
  if (response.status === 401) verify();
  try {
    return errorFromJson((await response.json()) as JsonValue, response.headers, fallback);
  } catch (error) {
    return error instanceof ConnectError ? error : fallback;
  }
}

function encode<T extends DescMessage>(schema: T, init: MessageInitShape<T>): JsonValue {
  return toJson(schema, create(schema, init));
}

const transport: Transport = {
  async unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>, signal: AbortSignal | undefined, timeoutMs: number | undefined,
    header: HeadersInit | undefined, input: MessageInitShape<I>,
  ): Promise<UnaryResponse<I, O>> {
    const head = new Headers(header);
    head.set("Content-Type", "application/json");
    head.set("Connect-Protocol-Version", "1");
    if (timeoutMs) head.set("Connect-Timeout-Ms", String(timeoutMs));
    for (const [name, value] of Object.entries(session.headers())) head.set(name, value);
    let response: Response;
    try {
      response = await fetch(`/${method.parent.typeName}/${method.name}`, {
        method: "POST", headers: head, body: JSON.stringify(encode(method.input, input)), signal: signal ?? null,
      });
    } catch (error) {
      if (signal?.aborted) throw new ConnectError("canceled", Code.Canceled);
      lost();
      throw new ConnectError("the daemon does not answer", Code.Unavailable, undefined, undefined, error);
    }
    if (!response.ok) throw await failure(response);
    const message = fromJson(method.output, (await response.json()) as JsonValue, reading);
    return {
      stream: false, service: method.parent, method, header: response.headers, trailer: new Headers(), message,
    };
  },

  async stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodStreaming<I, O>, signal: AbortSignal | undefined, _timeoutMs: number | undefined,
    _header: HeadersInit | undefined, input: AsyncIterable<MessageInitShape<I>>,
  ): Promise<StreamResponse<I, O>> {
    const replies = stream({
      name: `${method.parent.typeName}/${method.name}`,
      input: mapped(input, (each) => encode(method.input, each)),
      isStreamOfInputs: method.methodKind !== "server_streaming",
      signal,
    });
    return {
      stream: true, service: method.parent, method, header: new Headers(), trailer: new Headers(),
      message: mapped(replies, (each): MessageShape<O> => fromJson(method.output, each, reading)),
    };
  },
};

async function* mapped<A, B>(source: AsyncIterable<A>, change: (each: A) => B): AsyncGenerator<B> {
  for await (const each of source) yield change(each);
}

const clients = new Map<DescService, unknown>();

// The client of a service: client(SandboxService).list({}).
export function client<T extends DescService>(service: T): Client<T> {
  let found = clients.get(service);
  if (!found) {
    found = createClient(service, transport);
    clients.set(service, found);
  }
  return found as Client<T>;
}
