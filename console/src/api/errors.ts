// Errors of the API as text for people.
import { ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "@gen/error_pb";

export interface Failure {
  message: string;
  remedy: string;
  cause: string;
}

export function failureOf(error: unknown): Failure {
  if (!(error instanceof ConnectError)) {
    return { message: error instanceof Error ? error.message : String(error), remedy: "", cause: "" };
  }
  const info = error.findDetails(ErrorInfoSchema)[0];
  return { message: error.rawMessage, remedy: info?.remedy ?? "", cause: info?.cause ?? "" };
}

// One line: "no sandbox 'x'".
export function errorText(error: unknown): string {
  return failureOf(error).message;
}
