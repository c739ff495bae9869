package client

type deponentSpec struct{}

// NewDeponentSpec returns how benchmarkoor runs Deponent.
func NewDeponentSpec() Spec { return &deponentSpec{} }

var _ Spec = (*deponentSpec)(nil)

func (s *deponentSpec) Type() ClientType { return ClientDeponent }

func (s *deponentSpec) DefaultImage() string { return "deponent:latest" }

func (s *deponentSpec) DefaultCommand() []string {
	return []string{
		"node",
		"--datadir=/data",
		"--datadir.min-free=0",
		"--http",
		"--http.addr=0.0.0.0",
		"--http.port=8545",
		"--http.api=admin,debug,eth,net,web3",
		"--http.vhosts=*",
		"--authrpc.addr=0.0.0.0",
		"--authrpc.port=8551",
		"--authrpc.vhosts=*",
		"--authrpc.jwtsecret=/tmp/jwtsecret",
		"--metrics",
		"--metrics.addr=0.0.0.0",
		"--metrics.vhosts=*",
		"--metrics.port=8008",
		// debug_setHead on the public port.
		"--testing",
	}
}

func (s *deponentSpec) GenesisFlag() string { return "--chain=" }

func (s *deponentSpec) RequiresInit() bool { return false }

func (s *deponentSpec) InitCommand() []string { return nil }

func (s *deponentSpec) DataDir() string { return "/data" }

func (s *deponentSpec) GenesisPath() string { return "/tmp/genesis.json" }

func (s *deponentSpec) JWTPath() string { return "/tmp/jwtsecret" }

func (s *deponentSpec) RPCPort() int { return 8545 }

func (s *deponentSpec) EnginePort() int { return 8551 }

func (s *deponentSpec) MetricsPort() int { return 8008 }

func (s *deponentSpec) DefaultEnvironment() map[string]string { return nil }

func (s *deponentSpec) RPCRollbackSpec() *RPCRollbackSpec {
	return &RPCRollbackSpec{Method: RollbackMethodSetHeadHex, RPCMethod: "debug_setHead"}
}

func (s *deponentSpec) DefaultConfigFiles() map[string]string { return nil }
