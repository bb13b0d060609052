import PAMSallyport
import SallyportLogin

// The flow as these tests call it: with the files. Where the part Host is built, its
// ThroughService.swift stands in the place of this file.

let isThroughService = false

func authenticate(_ host: ScriptedHost, _ arguments: ModuleArguments, store: TestStore)
  -> ReturnCode
{
  PAMSallyport.authenticate(
    host, arguments, store: store, service: ServiceAuthority(at: "/nowhere"), isServed: false)
}

func manageAccount(_ host: ScriptedHost, _ arguments: ModuleArguments, store: TestStore)
  -> ReturnCode
{
  PAMSallyport.manageAccount(
    host, arguments, store: store, service: ServiceAuthority(at: "/nowhere"), isServed: false)
}
